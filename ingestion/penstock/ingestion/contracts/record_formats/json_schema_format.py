"""JSON in the wire format of schema registries, with a schema in JSON Schema."""

from collections.abc import Sequence

import msgspec

from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.record_formats.json_based_format import JsonBasedCodec, JsonBasedFormat
from penstock.ingestion.contracts.record_formats.record_format import (
    FindSchemaById,
    ReadJson,
    RecordCodec,
    Schema,
)
from penstock.ingestion.contracts.record_formats.schema_header import (
    SCHEMA_HEADER_BYTES,
    KnownSchemas,
    make_schema_header,
)
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.contracts.schemas import to_json_schema


class JsonSchemaFormat(JsonBasedFormat):
    """A value is a zero byte, the id of its schema, and a JSON object.

    The schema has to be one of the topic. The contract decides about the record: a JSON Schema may say much that a
    contract does not have.
    """

    keyword = "json_schema"
    description = "a zero byte, the id of the schema in the registry, a JSON object"
    stream_parser = "json"

    def to_schema(self, contract: Contract, _earlier_schemas: Sequence[Schema] = ()) -> Schema:
        """Return the JSON Schema of a contract."""
        return to_json_schema(contract)

    def open_reader(self, _rules: RecordRules, find_schema: FindSchemaById) -> ReadJson:
        """Return the function that takes the header off."""
        known = KnownSchemas(find_schema)

        def read_json(value: bytes) -> bytes:
            known.find_by_header(value)
            return value[SCHEMA_HEADER_BYTES:]

        return read_json

    def make_codec(
        self, contract: Contract, schema_id: int, read_json: ReadJson, _find_schema: FindSchemaById
    ) -> RecordCodec:
        """Return the codec."""
        return _JsonSchemaCodec(contract, schema_id, read_json)


class _JsonSchemaCodec(JsonBasedCodec):
    """Writes the header before the JSON."""

    def __init__(self, contract: Contract, schema_id: int, read_json: ReadJson) -> None:
        super().__init__(contract, read_json)
        self._header = make_schema_header(schema_id)

    def write(self, record: msgspec.Struct) -> bytes:
        """Return the header and the JSON of a record."""
        return self._header + msgspec.json.encode(record)
