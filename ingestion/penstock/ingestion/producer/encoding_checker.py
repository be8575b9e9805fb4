"""Validation of batches for topics whose values are not the plain JSON of records."""

from penstock.ingestion.contracts.json_codec import json_codec
from penstock.ingestion.contracts.record_formats.record_format import RecordCodec
from penstock.ingestion.errors import IgnoredRecordError, InvalidRecordError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import RecordSizeLimit, make_key_function


class EncodingChecker:
    """Validates values that have the format of the topic already, and encodes values that are JSON."""

    def __init__(self, codec: RecordCodec) -> None:
        self._codec = codec
        self._decode_json = json_codec(codec.contract).decode
        self._find_key = make_key_function(codec.contract)
        self._size_limit = RecordSizeLimit(codec.contract)

    def check(self, batch: SourceBatch) -> SourceBatch:
        """Return the batch with its keys, and with the error of each invalid record."""
        if batch.keys is not None:
            return batch
        return self._check_encoded(batch) if batch.is_encoded else self._check_and_encode(batch)

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value can be of the topic's format only."""
        return self._codec.is_encoded(value)

    def _check_and_encode(self, batch: SourceBatch) -> SourceBatch:
        values: list[bytes] = []
        keys: list[bytes | None] = []
        invalid: dict[int, InvalidRecordError] = {}
        for index, value in enumerate(batch.values):
            try:
                key, encoded = self._encode(value)
                self._size_limit.check(key, encoded)
            except InvalidRecordError as error:
                key, encoded = None, value
                invalid[index] = error
            keys.append(key)
            values.append(encoded)
        return batch.with_check_result(keys, invalid, values)

    def _encode(self, value: bytes) -> tuple[bytes | None, bytes]:
        """Return the key and the encoded value of a record in JSON, or in the format of the topic already."""
        if self._codec.is_encoded(value):
            return self._find_encoded_key(value), value
        record = self._decode_json(value)
        return self._find_key(record), self._codec.encode(record)

    def _check_encoded(self, batch: SourceBatch) -> SourceBatch:
        found_keys, unverified = self._codec.find_keys(batch.values, self._size_limit.safe_value_bytes)
        keys = list(found_keys)
        invalid: dict[int, InvalidRecordError] = {}
        for index in unverified:
            try:
                keys[index] = self._find_encoded_key(batch.values[index])
                self._size_limit.check(keys[index], batch.values[index])
            except InvalidRecordError as error:
                keys[index] = None
                invalid[index] = error
        return batch.with_check_result(keys, invalid)

    def _find_encoded_key(self, value: bytes) -> bytes | None:
        try:
            return self._find_key(self._codec.decode(value))
        except IgnoredRecordError:
            return None
