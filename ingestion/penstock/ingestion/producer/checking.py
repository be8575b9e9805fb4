"""Checking a batch against its contract, on its way to the producer."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.producer.batch import Batch

# A number takes more as the text of a key than in Avro, or in JSON with an exponent.
_LONGEST_NUMBER = 64


class Checker(Protocol):
    """Finds the keys of a batch, and which of its records break the contract."""

    def check(self, batch: Batch) -> Batch:
        """Return the batch as it is to be sent; one that has keys was checked before."""


class JsonChecker:
    """Checks JSON values; those that keep the contract go on byte for byte."""

    def __init__(self, contract: Contract) -> None:
        self._codec = json_codec(contract)
        self._size = SizeLimit(contract)
        self._key_of = key_of(contract)

    def check(self, batch: Batch) -> Batch:
        """Return the batch with its keys, and with what is wrong with the records that break the contract."""
        if batch.keys is not None:
            return batch
        keys: list[bytes | None] = []
        broken: dict[int, BrokenRecordError] = {}
        decode: Callable[[bytes], msgspec.Struct] = self._codec.decode
        find: Callable[[msgspec.Struct], bytes | None] = self._key_of
        measured = max(map(len, batch.values), default=0) > self._size.harmless
        if not measured:
            decode = self._codec.decode_unmeasured
        for place, value in enumerate(batch.values):
            try:
                key = find(decode(value))
                if measured:
                    self._size.check(key, value)
                keys.append(key)
            except (BrokenRecordError, *self._codec.failures) as error:
                keys.append(None)
                broken[place] = self._codec.broken(error)
        return batch.checked(keys, broken)


class SizeLimit:
    """What a record may weigh, its key and its value together: the topic is made to take that much."""

    def __init__(self, contract: Contract) -> None:
        self._limit = contract.max_bytes

    @property
    def harmless(self) -> int:
        """How many bytes a value may have that is not too large with any key, which is a field of it as text."""
        return (self._limit - _LONGEST_NUMBER) // 2

    def check(self, key: bytes | None, value: bytes) -> None:
        """Raise BrokenRecordError for a record that is too large."""
        size = len(key or b"") + len(value)
        if size > self._limit:
            raise BrokenRecordError(
                "too large", f"{size} bytes with its key, and the contract allows {self._limit}"
            )


def key_of(contract: Contract) -> Callable[[msgspec.Struct], bytes | None]:
    """Return the function that finds the Kafka key of a record."""
    if contract.key is None:
        return lambda _record: None
    value_of = attrgetter(contract.key)
    if contract.field(contract.key).type == "string":
        text_of: Callable[[msgspec.Struct], str] = value_of
        return lambda record: text_of(record).encode()
    return lambda record: str(value_of(record)).encode()


Encode = Callable[[msgspec.Struct], bytes]


def encoded(contract: Contract, records: Sequence[msgspec.Struct], position: Any, encode: Encode) -> Batch:
    """Return records that were made by this program as a batch that needs no check."""
    find = key_of(contract)
    return Batch([encode(record) for record in records], position, [find(record) for record in records])
