"""Validation of batches against their contract."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.invalid_reasons import describe_size
from penstock.ingestion.contracts.record_judge import DECODE_ERRORS
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch

# A number may need more bytes as key text than in Avro, or in JSON with an exponent.
_MAX_NUMBER_BYTES = 64


class RecordChecker(Protocol):
    """Finds the keys of a batch, and its invalid records."""

    def check(self, batch: SourceBatch) -> SourceBatch:
        """Return the batch ready for sending. A batch that has keys is already validated."""

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value can be of the topic's format only, and not the plain JSON of a record."""


class JsonChecker:
    """Validates JSON values; valid values are passed on byte for byte."""

    def __init__(self, contract: Contract) -> None:
        self._codec = json_codec(contract)
        self._size_limit = RecordSizeLimit(contract)
        self._find_key = make_key_function(contract)

    def check(self, batch: SourceBatch) -> SourceBatch:
        """Return the batch with its keys, and with the error of each invalid record."""
        if batch.keys is not None:
            return batch
        keys: list[bytes | None] = []
        invalid: dict[int, InvalidRecordError] = {}
        decode: Callable[[bytes], msgspec.Struct] = self._codec.judge.decode_valid
        find_key: Callable[[msgspec.Struct], bytes | None] = self._find_key
        must_check_size = max(map(len, batch.values), default=0) > self._size_limit.safe_value_bytes
        if must_check_size:
            decode = self._codec.decode
        for index, value in enumerate(batch.values):
            try:
                key = find_key(decode(value))
                if must_check_size:
                    self._size_limit.check(key, value)
                keys.append(key)
            except (InvalidRecordError, *DECODE_ERRORS) as error:
                key, problem = self._judge_again(value, error)
                keys.append(key)
                if problem is not None:
                    invalid[index] = problem
        return batch.with_check_result(keys, invalid)

    def is_encoded(self, _value: bytes) -> bool:
        """Return false: the topic has plain JSON."""
        return False

    def _judge_again(self, value: bytes, error: Exception) -> tuple[bytes | None, InvalidRecordError | None]:
        """Return the key of a record that could not be decoded at full speed, or its error."""
        if isinstance(error, InvalidRecordError):
            return None, error
        try:
            return self._find_key(self._codec.decode(value)), None
        except InvalidRecordError as problem:
            return None, problem


class RecordSizeLimit:
    """The size limit of a record: key and value together. The topic is configured for this size."""

    def __init__(self, contract: Contract) -> None:
        self._max_bytes = contract.max_bytes

    @property
    def safe_value_bytes(self) -> int:
        """The size up to which a value is within the limit with any key, because a key is the text of one field."""
        return (self._max_bytes - _MAX_NUMBER_BYTES) // 2

    def check(self, key: bytes | None, value: bytes) -> None:
        """Raise InvalidRecordError if a record is too large."""
        size_bytes = len(key or b"") + len(value)
        if size_bytes > self._max_bytes:
            raise describe_size(size_bytes, self._max_bytes)


def make_key_function(contract: Contract) -> Callable[[msgspec.Struct], bytes | None]:
    """Return the function that returns the Kafka key of a record."""
    if contract.key is None:
        return lambda _record: None
    get_key_field = attrgetter(contract.key)
    to_key_text = contract.get_field(contract.key).parsed_type.to_key_text
    return lambda record: to_key_text(get_key_field(record)).encode()


EncodeRecord = Callable[[msgspec.Struct], bytes]


def encode_batch(
    contract: Contract, records: Sequence[msgspec.Struct], position: Any, encode: EncodeRecord
) -> SourceBatch:
    """Return records that this program generated as a batch that needs no validation."""
    find_key = make_key_function(contract)
    return SourceBatch(
        [encode(record) for record in records], position, [find_key(record) for record in records]
    )
