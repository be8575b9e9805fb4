"""A contract's fields as an Avro schema or a JSON Schema, and back again.

These are what a schema registry keeps. Going there and back loses nothing that compatibility depends on.
"""

from collections.abc import Mapping
from typing import Any

from penstock.ingestion.contracts.model import Contract, Field
from penstock.ingestion.contracts.types import SCALARS, FieldType, avro_type
from penstock.ingestion.errors import ContractError

Schema = Mapping[str, Any]
_JSON_TYPES = {
    "string": "string",
    "boolean": "boolean",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "timestamp": "integer",
}


def schema_of(contract: Contract) -> Schema:
    """Return what is registered for a contract: an Avro schema, or a JSON Schema, by its encoding."""
    return avro_schema(contract) if contract.encoding == "avro" else json_schema(contract)


def fields_in(schema: Schema) -> tuple[Field, ...]:
    """Return the fields that a schema of either kind tells of; `timestamp` comes back from Avro as `long`."""
    if schema.get("type") == "record":
        return tuple(_from_avro(item) for item in schema["fields"])
    if schema.get("type") == "object":
        required = set(schema.get("required", ()))
        return tuple(
            Field(name, _type_in_json(item), item.get("description", ""), name in required)
            for name, item in schema["properties"].items()
        )
    raise ContractError(
        f"a schema of type {schema.get('type')!r} tells no fields; only records and objects do"
    )


def avro_schema(contract: Contract) -> Schema:
    """Return the Avro schema of a contract; a field that may be absent is a union with null."""
    return {
        "type": "record",
        "name": record_name(contract.topic),
        "namespace": "penstock",
        "doc": contract.doc,
        "fields": [_as_avro(item) for item in contract.fields],
    }


def record_name(topic: str) -> str:
    """Return what the record of a topic is called in Avro."""
    return "".join(part.title() for part in topic.replace("-", ".").replace("_", ".").split("."))


def json_schema(contract: Contract) -> Schema:
    """Return the JSON Schema of a contract; fields it does not name are refused."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": contract.topic,
        "description": contract.doc,
        "type": "object",
        "properties": {
            item.name: {**_json_type(item.kind, optional=not item.required), "description": item.doc}
            for item in contract.fields
        },
        "required": [item.name for item in contract.fields if item.required],
        "additionalProperties": False,
    }


def _as_avro(item: Field) -> dict[str, Any]:
    kind = avro_type(item.kind)
    if item.required:
        return {"name": item.name, "type": kind, "doc": item.doc}
    return {"name": item.name, "type": ["null", kind], "doc": item.doc, "default": None}


def _from_avro(item: Schema) -> Field:
    kind, required = item["type"], True
    if isinstance(kind, list):
        kind, required = next(member for member in kind if member != "null"), False
    return Field(item["name"], _type_in_avro(kind), item.get("doc", ""), required)


def _type_in_avro(kind: Any) -> str:
    if isinstance(kind, Mapping) and kind.get("type") == "array":
        return f"array<{_type_in_avro(kind['items'])}>"
    if isinstance(kind, Mapping):
        kind = kind.get("type")
    if kind not in SCALARS:
        raise ContractError(
            f"Avro type {kind!r} has no counterpart here; known are {', '.join(SCALARS)}, arrays"
        )
    return str(kind)


def _json_type(kind: FieldType, *, optional: bool = False) -> dict[str, Any]:
    if kind.item is not None:
        return {"type": ["array", "null"] if optional else "array", "items": _json_type(kind.item)}
    name = _JSON_TYPES[kind.name]
    return {"type": [name, "null"] if optional else name, "format": kind.name}


def _type_in_json(item: Schema) -> str:
    if "items" in item:
        return f"array<{_type_in_json(item['items'])}>"
    if item.get("format") in SCALARS:
        return str(item["format"])
    kinds = item.get("type")
    name = next((kind for kind in kinds if kind != "null"), None) if isinstance(kinds, list) else kinds
    known = {"string": "string", "boolean": "boolean", "integer": "long", "number": "double"}
    if name not in known:
        raise ContractError(
            f"JSON type {name!r} has no counterpart here; known are {', '.join(known)}, arrays"
        )
    return known[str(name)]
