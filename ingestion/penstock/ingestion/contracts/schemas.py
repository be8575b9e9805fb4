"""Conversion between contract fields and Avro or JSON schemas, in both directions.

A schema registry stores these schemas. A round trip preserves everything that compatibility depends on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.field_types.type_discovery import parse_avro_type, parse_json_schema
from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.errors import ContractError

PROTO_TEXT_KEY = "proto"
"""The key under which the schema of a message holds its text in the language of Protobuf."""
ENVELOPE_PARTS = {"row", "envelope"}
"""The definitions in the schema of an event: the fields of the row, and those of the envelope around it."""
_LOGICAL_KEYS = ("logicalType", "precision", "scale")
_NESTED_KEYS = ("fields", "type", "items", "values")
JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def parse_schema_fields(schema: Schema) -> tuple[ContractField, ...]:
    """Return the fields of a schema. Avro has no name for some formats of timestamps."""
    if PROTO_TEXT_KEY in schema:
        from penstock.ingestion.contracts.protobuf.proto_text import parse_proto_fields

        return parse_proto_fields(schema[PROTO_TEXT_KEY])
    if schema.get("type") == "record":
        return tuple(_parse_avro_field(item) for item in schema["fields"])
    if schema.get("$defs", {}).keys() >= ENVELOPE_PARTS:
        return tuple(
            field for part in ("row", "envelope") for field in parse_schema_fields(schema["$defs"][part])
        )
    if schema.get("type") == "object":
        required = set(schema.get("required", ()))
        return tuple(
            ContractField(name, str(parse_json_schema(item)), item.get("description", ""), name in required)
            for name, item in schema["properties"].items()
        )
    raise ContractError(
        f"A schema of type {schema.get('type')!r} has no fields. Use an Avro record or a JSON object."
    )


def refuses_unknown_fields(schema: Schema) -> bool:
    """Return whether a schema refuses fields that it does not declare. An Avro reader ignores them."""
    row = schema["$defs"]["row"] if schema.get("$defs", {}).keys() >= ENVELOPE_PARTS else schema
    return row.get("additionalProperties") is False


def to_avro_schema(contract: Contract) -> Schema:
    """Return the Avro schema of a contract. An optional field is a union with null."""
    record_name = avro_record_name(contract.topic)
    return {
        "type": "record",
        "name": record_name,
        "namespace": "penstock",
        "doc": contract.doc,
        "fields": [_to_avro_field(item, record_name) for item in contract.fields],
    }


def avro_record_name(topic: str) -> str:
    """Return the Avro record name of a topic."""
    return "".join(part.title() for part in topic.replace("-", ".").replace("_", ".").split("."))


def without_logical_types(schema: Any) -> Any:
    """Return an Avro schema of primitive types. The codec converts logical values itself."""
    if isinstance(schema, list):
        return [without_logical_types(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: value for name, value in schema.items() if name not in _LOGICAL_KEYS}
    return {
        name: without_logical_types(value) if name in _NESTED_KEYS else value for name, value in kept.items()
    }


def to_json_schema(contract: Contract) -> Schema:
    """Return the JSON Schema of a contract. It allows unknown fields unless the contract refuses them."""
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": contract.topic,
        "description": contract.doc,
        **_to_object_schema(contract.fields, contract),
    }


def to_envelope_schema(contract: Contract) -> Schema:
    """Return the JSON Schema of events of changed rows."""
    envelope = dict(contract.envelope)
    parts = {
        "row": [field for field in contract.fields if field.name not in envelope],
        "envelope": [field for field in contract.fields if field.name in envelope],
    }
    row = {"anyOf": [{"$ref": "#/$defs/row"}, {"type": "null"}]}
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": contract.topic,
        "description": contract.doc,
        "type": "object",
        "properties": {"before": row, "after": row, "op": {"type": "string", "enum": ["c", "r", "u", "d"]}},
        "required": ["op"],
        "$defs": {name: _to_object_schema(fields, contract) for name, fields in parts.items()},
    }


def _to_object_schema(fields: Sequence[ContractField], contract: Contract) -> Schema:
    return {
        "type": "object",
        "properties": {item.name: {**_to_json_type(item), "description": item.doc} for item in fields},
        "required": [item.name for item in fields if item.required],
        "additionalProperties": contract.unknown_fields != "refuse",
    }


def _to_avro_field(item: ContractField, record_name: str) -> dict[str, Any]:
    kind = item.parsed_type.to_avro_type(f"{record_name}_{item.name}")
    if item.required:
        return {"name": item.name, "type": kind, "doc": item.doc}
    return {"name": item.name, "type": ["null", kind], "doc": item.doc, "default": None}


def _parse_avro_field(item: Schema) -> ContractField:
    kind, required = item["type"], True
    if isinstance(kind, list):
        kind, required = next(member for member in kind if member != "null"), False
    return ContractField(item["name"], str(parse_avro_type(kind)), item.get("doc", ""), required)


def _to_json_type(item: ContractField) -> Schema:
    schema = item.parsed_type.json_schema
    if item.required:
        return schema
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    symbols = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*names, "null"], **symbols}
