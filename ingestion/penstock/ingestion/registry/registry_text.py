"""Schemas as a registry server stores them: a text and its type."""

import json
from typing import Literal, NamedTuple, TypeAlias

from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.contracts.schemas import PROTO_TEXT_KEY

SchemaType: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]


class RegistryText(NamedTuple):
    """The text of a schema, and its type."""

    text: str
    schema_type: SchemaType


def to_registry_text(schema: Schema) -> RegistryText:
    """Return a schema as a server stores it."""
    if PROTO_TEXT_KEY in schema:
        return RegistryText(schema[PROTO_TEXT_KEY], "PROTOBUF")
    return RegistryText(json.dumps(schema), "AVRO" if schema.get("type") == "record" else "JSON")


def from_registry_text(stored: RegistryText) -> Schema:
    """Return a schema that a server stores."""
    if stored.schema_type == "PROTOBUF":
        return {PROTO_TEXT_KEY: stored.text}
    schema: Schema = json.loads(stored.text)
    return schema
