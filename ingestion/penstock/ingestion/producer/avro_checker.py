"""Validation of batches for topics with Avro records."""

from collections.abc import Sequence

import numpy as np

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.avro_codec import AVRO_HEADER_BYTES, AvroCodec
from penstock.ingestion.contracts.avro_columns import AvroColumnScan
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import RecordSizeLimit, make_key_function


class AvroChecker:
    """Validates values that are Avro already, and encodes values that are JSON."""

    def __init__(self, codec: AvroCodec) -> None:
        self._codec = codec
        self._contract: Contract = codec.contract
        self._find_key = make_key_function(codec.contract)
        self._size_limit = RecordSizeLimit(codec.contract)

    def check(self, batch: SourceBatch) -> SourceBatch:
        """Return the batch with its keys, and with the error of each invalid record."""
        if batch.keys is not None:
            return batch
        return self._check_encoded(batch) if batch.is_encoded else self._check_and_encode(batch)

    def _check_and_encode(self, batch: SourceBatch) -> SourceBatch:
        values: list[bytes] = []
        keys: list[bytes | None] = []
        invalid: dict[int, InvalidRecordError] = {}
        decode = json_codec(self._contract).decode
        for index, value in enumerate(batch.values):
            try:
                record = decode(value)
                key, encoded = self._find_key(record), self._codec.encode(record)
                self._size_limit.check(key, encoded)
            except InvalidRecordError as error:
                key, encoded = None, value
                invalid[index] = error
            keys.append(key)
            values.append(encoded)
        return batch.with_check_result(keys, invalid, values)

    def _check_encoded(self, batch: SourceBatch) -> SourceBatch:
        keys: list[bytes | None] = [None] * len(batch)
        unverified: list[int] = []
        for header, indexes in _group_by_schema(batch.values):
            unverified += self._check_columns(batch.values, indexes, header, keys)
        invalid: dict[int, InvalidRecordError] = {}
        for index in sorted(unverified):
            try:
                keys[index] = self._find_key(self._codec.decode(batch.values[index]))
                self._size_limit.check(keys[index], batch.values[index])
            except InvalidRecordError as error:
                keys[index] = None
                invalid[index] = error
        return batch.with_check_result(keys, invalid)

    def _check_columns(
        self, values: Sequence[bytes], indexes: Sequence[int], header: bytes, keys: list[bytes | None]
    ) -> list[int]:
        """Fill in the keys of records that pass the columnar scan; return the indexes of the others."""
        try:
            _, fields = self._codec.find_writer_schema(
                int.from_bytes(header[1:], "big") if header[:1] == b"\0" else -1
            )
        except InvalidRecordError:
            return list(indexes)
        selected = values if len(indexes) == len(values) else [values[index] for index in indexes]
        columns = AvroColumnScan(selected, fields, AVRO_HEADER_BYTES)
        is_valid = columns.valid_mask & (columns.lengths <= self._size_limit.safe_value_bytes)
        key_field = next((field for field in fields if field.name == self._contract.key), None)
        if key_field is not None:
            key_texts = columns.key_texts(key_field)
            if key_texts is None:
                return list(indexes)
            if selected is values:
                keys[:] = key_texts
            else:
                for index, text in zip(indexes, key_texts, strict=True):
                    keys[index] = text
        return [indexes[number] for number in np.flatnonzero(~is_valid).tolist()]


def _group_by_schema(values: Sequence[bytes]) -> list[tuple[bytes, Sequence[int]]]:
    """Return the indexes of the values, grouped by schema id header."""
    headers = {value[:AVRO_HEADER_BYTES] for value in values}
    if len(headers) == 1:
        return [(headers.pop(), range(len(values)))]
    return [
        (header, [index for index, value in enumerate(values) if value[:AVRO_HEADER_BYTES] == header])
        for header in headers
    ]
