"""The base of formats whose records become JSON, which the judge of records judges."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.invalid_reasons import describe_size
from penstock.ingestion.contracts.json_codec import json_codec
from penstock.ingestion.contracts.record_formats.record_format import (
    FindSchemaById,
    KeyedRecords,
    ReadJson,
    RecordCodec,
    RecordFormat,
)
from penstock.ingestion.contracts.record_rules import RecordRules, to_record_rules


class JsonBasedCodec:
    """Reads a value as JSON, and judges it. A format defines how values become JSON, and how it writes records."""

    def __init__(self, contract: Contract, read_json: ReadJson) -> None:
        self.contract = contract
        self.judge = json_codec(contract).judge
        self._read_json = read_json

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the value of a record. A mapping is validated first."""
        return self.write(self.judge.convert(record) if isinstance(record, Mapping) else record)

    def write(self, record: msgspec.Struct) -> bytes:
        """Return the value of a valid record."""
        return msgspec.json.encode(record)

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the record of a value; raise InvalidRecordError or IgnoredRecordError."""
        limit = self.contract.max_bytes
        if len(value) > limit:
            raise describe_size(len(value), limit)
        return self.judge.decode(self._read_json(value))

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value starts with a zero byte, as no JSON does."""
        return value.startswith(b"\0")

    def find_keys(self, values: Sequence[bytes], _max_value_bytes: int) -> KeyedRecords:
        """Leave every value to the decoder."""
        return [None] * len(values), range(len(values))


class JsonBasedFormat(RecordFormat):
    """A format whose values become the JSON of a record."""

    @abstractmethod
    def open_reader(self, rules: RecordRules, find_schema: FindSchemaById) -> ReadJson:
        """Return the function that returns the JSON of a record."""

    def create_codec(self, contract: Contract, schema_id: int, find_schema: FindSchemaById) -> RecordCodec:
        """Return the codec of a contract."""
        return self.make_codec(
            contract, schema_id, self.open_reader(to_record_rules(contract), find_schema), find_schema
        )

    @abstractmethod
    def make_codec(
        self, contract: Contract, schema_id: int, read_json: ReadJson, find_schema: FindSchemaById
    ) -> RecordCodec:
        """Return the codec that reads JSON with this function."""
