"""Checking batches for a topic whose records are Avro."""

from collections.abc import Sequence

import numpy as np

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.avro_codec import HEADER_BYTES, AvroCodec
from penstock.ingestion.contracts.avro_columns import AvroColumns
from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import SizeLimit, key_of


class AvroChecker:
    """Checks values that are Avro already, and encodes those that come as JSON."""

    def __init__(self, codec: AvroCodec) -> None:
        self._codec = codec
        self._contract: Contract = codec.contract
        self._key_of = key_of(codec.contract)
        self._size = SizeLimit(codec.contract)

    def check(self, batch: Batch) -> Batch:
        """Return the batch with its keys, and with what is wrong with the records that break the contract."""
        if batch.keys is not None:
            return batch
        return self._checked(batch) if batch.encoded else self._encoded(batch)

    def _encoded(self, batch: Batch) -> Batch:
        values: list[bytes] = []
        keys: list[bytes | None] = []
        broken: dict[int, BrokenRecordError] = {}
        decode = json_codec(self._contract).decode
        for place, value in enumerate(batch.values):
            try:
                record = decode(value)
                key, made = self._key_of(record), self._codec.encode(record)
                self._size.check(key, made)
            except BrokenRecordError as error:
                key, made = None, value
                broken[place] = error
            keys.append(key)
            values.append(made)
        return batch.checked(keys, broken, values)

    def _checked(self, batch: Batch) -> Batch:
        keys: list[bytes | None] = [None] * len(batch)
        doubtful: list[int] = []
        for head, places in _by_schema(batch.values):
            doubtful += self._pass(batch.values, places, head, keys)
        broken: dict[int, BrokenRecordError] = {}
        for place in sorted(doubtful):
            try:
                keys[place] = self._key_of(self._codec.decode(batch.values[place]))
                self._size.check(keys[place], batch.values[place])
            except BrokenRecordError as error:
                keys[place] = None
                broken[place] = error
        return batch.checked(keys, broken)

    def _pass(
        self, values: Sequence[bytes], places: Sequence[int], head: bytes, keys: list[bytes | None]
    ) -> list[int]:
        """Find the keys of the records that a pass over columns clears; return the places of the others."""
        try:
            _, fields = self._codec.writer(int.from_bytes(head[1:], "big") if head[:1] == b"\0" else -1)
        except BrokenRecordError:
            return list(places)
        picked = values if len(places) == len(values) else [values[place] for place in places]
        columns = AvroColumns(picked, fields, HEADER_BYTES)
        clear = columns.good & (columns.lengths <= self._size.harmless)
        key = next((field for field in fields if field.name == self._contract.key), None)
        if key is not None:
            texts = columns.keys(key)
            if picked is values:
                keys[:] = texts
            else:
                for place, text in zip(places, texts, strict=True):
                    keys[place] = text
        return [places[number] for number in np.flatnonzero(~clear).tolist()]


def _by_schema(values: Sequence[bytes]) -> list[tuple[bytes, Sequence[int]]]:
    """Return the places of the values that begin with the same schema id."""
    heads = {value[:HEADER_BYTES] for value in values}
    if len(heads) == 1:
        return [(heads.pop(), range(len(values)))]
    return [
        (head, [place for place, value in enumerate(values) if value[:HEADER_BYTES] == head])
        for head in heads
    ]
