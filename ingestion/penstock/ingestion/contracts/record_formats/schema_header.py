"""The header of the wire format of schema registries: a zero byte, and the id of the schema in four bytes."""

import struct
from typing import Any, Protocol

from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.contracts.record_formats.record_format import FindSchemaById, Schema
from penstock.ingestion.errors import InvalidRecordError

_HEADER_STRUCT = struct.Struct(">BI")
SCHEMA_HEADER_BYTES = _HEADER_STRUCT.size


def make_schema_header(schema_id: int) -> bytes:
    """Return the header for a schema."""
    return _HEADER_STRUCT.pack(0, schema_id)


def read_schema_id(value: bytes) -> int:
    """Return the id of the schema of a value; raise InvalidRecordError if it has no header."""
    if len(value) < SCHEMA_HEADER_BYTES or value[0] != 0:
        raise make_invalid_record("wrong_schema", "the value does not start with a zero byte and a schema id")
    schema_id: int = _HEADER_STRUCT.unpack_from(value)[1]
    return schema_id


class ParseSchema(Protocol):
    """Makes of a schema what a reader needs, or returns None if it cannot be read."""

    def __call__(self, schema: Schema) -> Any:
        """Return what the reader needs."""


class KnownSchemas:
    """The schemas of a topic by id; each is looked up and parsed once."""

    def __init__(
        self, find_schema: FindSchemaById, parse_schema: ParseSchema = lambda schema: schema
    ) -> None:
        self._find_schema = find_schema
        self._parse_schema = parse_schema
        self._parsed: dict[int, Any] = {}

    def find_by_header(self, value: bytes) -> Any:
        """Return the parsed schema of a value; raise InvalidRecordError if it is unknown or cannot be read."""
        schema_id = read_schema_id(value)
        if schema_id not in self._parsed:
            schema = self._find_schema(schema_id)
            self._parsed[schema_id] = None if schema is None else self._parse_schema(schema)
        parsed = self._parsed[schema_id]
        if parsed is None:
            raise describe_unknown_schema(schema_id)
        return parsed


def describe_unknown_schema(schema_id: int) -> InvalidRecordError:
    """Return the error for a schema that is not one of the topic, or that the contract cannot read."""
    return make_invalid_record(
        "wrong_schema", f"schema {schema_id} is not registered, or this contract cannot read it"
    )
