"""The JSON Schema of a contract in YAML, from which editors complete and check."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, get_args

from penstock.core.duration import DURATION_PATTERN
from penstock.ingestion.contracts.contract_modes import CompatibilityMode, DeletePolicy, UnknownFieldPolicy
from penstock.ingestion.contracts.contract_parser import CONTRACT_KEYS, FIELD_KEYS, LAYOUT_KEYS
from penstock.ingestion.contracts.field_types.timestamp_formats import FORMATS_BY_NAME
from penstock.ingestion.contracts.field_types.type_discovery import FIELD_TYPES
from penstock.ingestion.contracts.record_formats.format_discovery import RECORD_FORMATS
from penstock.ingestion.contracts.schemas import JSON_SCHEMA_DIALECT

_JSON_TYPES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    list: "array",
    dict: "object",
}
_DURATION = {"type": "string", "pattern": DURATION_PATTERN, "examples": ["10 seconds", "1 hour", "7 days"]}


def build_contract_schema() -> dict[str, Any]:
    """Return the schema. What it accepts may still be refused: it does not look into types."""
    formats = RECORD_FORMATS.kinds_by_name
    special_keys = {
        "encoding": {
            "type": "string",
            "pattern": rf"^({'|'.join(formats)}|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$",
            "description": "; ".join(f"{name}: {kind.description}" for name, kind in formats.items()),
            "examples": list(formats),
        },
        "envelope": {
            "type": "object",
            "additionalProperties": {"type": "string", "examples": ["op", "source.ts_ms"]},
        },
        "deletes": {"enum": [*get_args(DeletePolicy), None]},
        "compatibility": {"enum": list(get_args(CompatibilityMode))},
        "unknown_fields": {"enum": list(get_args(UnknownFieldPolicy))},
        "max_out_of_orderness": _DURATION,
        "max_future_skew": {"anyOf": [_DURATION, {"enum": ["unlimited", None]}]},
        "owner": {"type": ["string", "null"], "examples": ["team:sensors"]},
        "fields": {"type": "array", "items": {"$ref": "#/$defs/field"}, "minItems": 1},
        "layout": {"$ref": "#/$defs/layout"},
        "environments": {"type": "object", "additionalProperties": {"$ref": "#/$defs/layout"}},
    }
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": "Penstock contract of a topic",
        **_mapping_schema(CONTRACT_KEYS, special_keys, ("topic", "fields")),
        "$defs": {"field": _field_schema(), "layout": _layout_schema()},
    }


def _field_schema() -> dict[str, Any]:
    keywords = {name: kind.syntax or name for name, kind in FIELD_TYPES.kinds_by_name.items()}
    type_names = "|".join(keywords)
    special_keys = {
        "type": {
            "type": "string",
            "pattern": rf"^\s*({type_names}|[A-Za-z_][\w.]*:[A-Za-z_]\w*)\s*([(<].*[)>])?\s*$",
            "description": f"One of: {', '.join(keywords.values())}.",
            "examples": list(keywords.values()),
        },
        "format": {"enum": list(FORMATS_BY_NAME)},
        "symbols": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "fields": {"type": "array", "items": {"$ref": "#/$defs/field"}, "minItems": 1},
    }
    return _mapping_schema(FIELD_KEYS, special_keys, ("name", "type", "doc"))


def _layout_schema() -> dict[str, Any]:
    special_keys = {
        "partitions": {"type": "integer", "minimum": 1},
        "replicas": {"type": "integer", "minimum": 1},
        "retention": {"anyOf": [_DURATION, {"const": "forever"}]},
    }
    return _mapping_schema(LAYOUT_KEYS, special_keys, ())


def _mapping_schema(
    keys: Mapping[str, Any], special_keys: Mapping[str, Any], required: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: special_keys.get(name) or _plain_schema(kind) for name, kind in keys.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def _plain_schema(kind: Any) -> dict[str, Any]:
    if isinstance(kind, UnionType):
        return {"type": [_JSON_TYPES[each] if each is not NoneType else "null" for each in get_args(kind)]}
    return {"type": _JSON_TYPES[kind]}
