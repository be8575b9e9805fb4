"""JSON objects, as they are."""

from collections.abc import Sequence

from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.json_codec import json_codec
from penstock.ingestion.contracts.record_formats.record_format import (
    FindSchemaById,
    ReadJson,
    RecordCodec,
    RecordFormat,
    Schema,
)
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.contracts.schemas import to_json_schema


class JsonFormat(RecordFormat):
    """A value is a JSON object. Its schema is registered for others; no value names it."""

    keyword = "json"
    description = "a JSON object"
    has_plain_values = True
    has_writer_schemas = False
    stream_parser = "json"

    def to_schema(self, contract: Contract, _earlier_schemas: Sequence[Schema] = ()) -> Schema:
        """Return the JSON Schema of a contract."""
        return to_json_schema(contract)

    def create_codec(self, contract: Contract, _schema_id: int, _find_schema: FindSchemaById) -> RecordCodec:
        """Return the codec of a contract."""
        return json_codec(contract)

    def open_reader(self, _rules: RecordRules, _find_schema: FindSchemaById) -> ReadJson:
        """Return the function that returns a value as it is."""
        return lambda value: value
