"""The JSON Schema of a suite in YAML, from which editors complete and check."""

from typing import Any, get_args

from penstock.core.duration import DURATION_PATTERN
from penstock.engine.plan.sources import CheckAction
from penstock.quality.expectations.arguments import IGNORED_ARGUMENTS
from penstock.quality.expectations.gx_library import load_library

_INTERNAL_ARGUMENTS = {"id", "rendered_content", "windows", "batch_id"}


def build_suite_schema() -> dict[str, Any]:
    """Return the schema of the expectations of a topic or a table. It imports the library, which takes seconds."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Penstock suite of expectations",
        "type": "object",
        "properties": {
            "expectations": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/expectation"}},
            "batches": {
                "enum": [{"window": "final"}, {"by": "day"}, {"by": "version"}, {"by": "rows"}],
                "description": "What one check of a table covers. A suite of a topic has none.",
            },
            "statistics": {
                "type": "object",
                "properties": {
                    "every": {"type": "string", "pattern": DURATION_PATTERN},
                    "sensitivity": {"type": "number", "exclusiveMinimum": 0},
                    "distinct": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["every", "sensitivity"],
                "additionalProperties": False,
            },
        },
        "required": ["expectations"],
        "additionalProperties": False,
        "$defs": {
            "expectation": {
                "anyOf": [_expectation_schema(*each) for each in load_library().list_expectations().items()]
            },
            "meta": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
                    "action": {
                        "enum": list(get_args(CheckAction)),
                        "description": "What happens to a record of a topic. A table's expectation has none.",
                    },
                    "why": {"type": "string"},
                },
            },
        },
    }


def _expectation_schema(name: str, expectation: Any) -> dict[str, Any]:
    fields = {
        field_name: field
        for field_name, field in expectation.__fields__.items()
        if field_name not in _INTERNAL_ARGUMENTS | IGNORED_ARGUMENTS
    }
    required = [field_name for field_name, field in fields.items() if field.required]
    return {
        "type": "object",
        "properties": {
            "type": {"const": name},
            "kwargs": {
                "type": "object",
                "properties": {argument: {} for argument in (*fields, *sorted(IGNORED_ARGUMENTS))},
                "additionalProperties": False,
                **({"required": required} if required else {}),
            },
            "meta": {"$ref": "#/$defs/meta"},
        },
        "required": ["type", *(["kwargs"] if required else [])],
        "additionalProperties": False,
    }
