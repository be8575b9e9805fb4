"""The JSON Schema of a pipeline in YAML, from which editors complete and check.

It is derived from the functions that the sections and keywords call. What it accepts may still be refused when the
pipeline is loaded: it knows no contracts, and no kinds that are named as `module:name`.
"""

from typing import Any, get_args

from penstock.core.kind_registry import KindRegistry
from penstock.engine.definition.keyword import KeywordFunction
from penstock.engine.plan.stages import AccumulationMode
from penstock.stream.inputs import join, read, read_panes
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    POLICY_KEYWORDS,
    SINK_KEYWORDS,
    TRIGGER_KEYWORDS,
    WINDOW_KEYWORDS,
)
from penstock.stream.pipeline import Pipeline
from penstock.stream.yaml_loader.document import (
    INPUT_SECTIONS,
    LATER_STAGE_SECTIONS,
    PART_SECTIONS,
    SECTION_HANDLERS,
)
from penstock.stream.yaml_loader.parameter_schema import (
    DURATION_DEFINITION,
    JsonSchema,
    keyword_schema,
    parameters_schema,
    requires_argument,
)
from penstock.stream.yaml_loader.steps import STEP_PARSERS

REFERENCE_PATTERN = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"
"""A function or class of a module, as in `mypackage.mymodule:name`."""
TEXT: JsonSchema = {"type": "string"}
TEXTS: JsonSchema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
REFERENCE: JsonSchema = {"type": "string", "pattern": f"^{REFERENCE_PATTERN}$"}
COLUMN_TYPES: JsonSchema = {"type": "object", "additionalProperties": TEXT}


def build_document_schema() -> JsonSchema:
    """Return the schema of a pipeline in YAML."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Penstock pipeline",
        "$ref": "#/$defs/document",
        "$defs": {
            "document": _document_schema(tuple(SECTION_HANDLERS)),
            "part": {
                "anyOf": [TEXT, _document_schema(PART_SECTIONS, is_input=False), {"$ref": "#/$defs/document"}]
            },
            "later_stage": _document_schema(LATER_STAGE_SECTIONS, is_input=False),
            "aggregate_call": _aggregate_schema(),
            "sink": _sink_schema(),
            "step": {"anyOf": [_step_schema(name) for name in STEP_PARSERS]},
            "duration": DURATION_DEFINITION,
            "window": _registry_schema(WINDOW_KEYWORDS),
            "trigger": _registry_schema(TRIGGER_KEYWORDS),
            "policy": _registry_schema(POLICY_KEYWORDS),
        },
    }


def _document_schema(names: tuple[str, ...], *, is_input: bool = True) -> JsonSchema:
    sections = _section_schemas()
    schema: JsonSchema = {
        "type": "object",
        "properties": {name: sections[name] for name in names},
        "additionalProperties": False,
    }
    return {**schema, "oneOf": [{"required": [name]} for name in INPUT_SECTIONS]} if is_input else schema


def _section_schemas() -> dict[str, JsonSchema]:
    part, stage = {"$ref": "#/$defs/part"}, {"$ref": "#/$defs/later_stage"}
    document = {"$ref": "#/$defs/document"}
    topics = {"topic": TEXTS, "topics": TEXTS}
    trigger_options = parameters_schema(Pipeline.trigger, without=["trigger"])["properties"]
    return {
        "read": {"anyOf": [TEXTS, parameters_schema(read, additional=topics)]},
        "union": {"type": "array", "items": part, "minItems": 2},
        "join": parameters_schema(join, additional={"left": part, "right": part}),
        "read_panes": parameters_schema(read_panes),
        "demo": {"type": "object"},
        "deduplicate": {"anyOf": [{"const": True}, parameters_schema(Pipeline.deduplicate)]},
        "steps": _one_or_several({"$ref": "#/$defs/step"}),
        "key": TEXTS,
        "aggregate": {"type": "object", "additionalProperties": {"$ref": "#/$defs/aggregate_call"}},
        "stateful": parameters_schema(
            Pipeline.stateful, additional={"function": REFERENCE, "state": REFERENCE, "version": {}}
        ),
        "rows": COLUMN_TYPES,
        "window": {"$ref": "#/$defs/window"},
        "trigger": {
            "anyOf": [{"enum": _words(TRIGGER_KEYWORDS)}, _trigger_mapping(trigger_options), REFERENCE]
        },
        "accumulation": {"enum": list(get_args(AccumulationMode))},
        "write": _one_or_several({"$ref": "#/$defs/sink"}),
        "publish": TEXTS,
        "name": {"type": ["string", "integer"]},
        "then": _one_or_several(stage),
        "also": _one_or_several(document),
    }


def _one_or_several(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _words(registry: KindRegistry[KeywordFunction]) -> list[str]:
    """Return the keywords that need no arguments."""
    return [name for name, function in registry.kinds_by_name.items() if not requires_argument(function)]


def _keyword_properties(registry: KindRegistry[KeywordFunction]) -> dict[str, JsonSchema]:
    return {name: keyword_schema(function) for name, function in registry.kinds_by_name.items()}


def _registry_schema(registry: KindRegistry[KeywordFunction]) -> JsonSchema:
    """Return the schema of a keyword with its arguments: a word, `{keyword: arguments}` or `module:name`."""
    mapping: JsonSchema = {
        "type": "object",
        "properties": _keyword_properties(registry),
        "patternProperties": {f"^{REFERENCE_PATTERN}$": {}},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    words = _words(registry)
    return {"anyOf": [*([{"enum": words}] if words else []), mapping, REFERENCE]}


def _trigger_mapping(options: dict[str, JsonSchema]) -> JsonSchema:
    return {
        "type": "object",
        "properties": {**_keyword_properties(TRIGGER_KEYWORDS), **options},
        "patternProperties": {f"^{REFERENCE_PATTERN}$": {}},
        "additionalProperties": False,
    }


def _aggregate_schema() -> JsonSchema:
    words = "|".join(AGGREGATE_KEYWORDS.kinds_by_name)
    call: JsonSchema = {
        "type": "string",
        "pattern": rf"^\s*({words}|{REFERENCE_PATTERN})\s*\(.*\)\s*$",
        "description": "A call, such as mean(temperature) or count().",
        "examples": [
            f"{name}()" if name == "count" else f"{name}(field)" for name in AGGREGATE_KEYWORDS.kinds_by_name
        ],
    }
    combiner: JsonSchema = {
        "type": "object",
        "properties": {"combine": REFERENCE, "fields": {"type": "array", "items": TEXT}, "version": {}},
        "required": ["combine"],
        "additionalProperties": False,
    }
    return {"anyOf": [call, combiner]}


def _sink_schema() -> JsonSchema:
    modes = {"anyOf": [{"enum": list(SINK_KEYWORDS.kinds_by_name)}, REFERENCE]}
    schema = parameters_schema(Pipeline.write, additional={"mode": modes})
    return {"anyOf": [TEXT, {**schema, "required": ["table"], "additionalProperties": True}]}


def _step_schema(name: str) -> JsonSchema:
    columns: JsonSchema = {
        "anyOf": [
            TEXT,
            {"type": "array", "items": {"anyOf": [TEXT, {"type": "object", "additionalProperties": TEXT}]}},
        ]
    }
    lookup = parameters_schema(Pipeline.lookup)
    value: dict[str, Any] = {"filter": TEXT, "sql": TEXT, "select": columns, "lookup": lookup}
    options_by_step: dict[str, JsonSchema] = {
        "map": {"returns": COLUMN_TYPES, "version": {}},
        "flat_map": {"returns": COLUMN_TYPES, "version": {}},
        "apply": {"version": {}},
        "arrow": {"version": {}},
    }
    options = options_by_step.get(name, {})
    return {
        "type": "object",
        "properties": {name: value.get(name, REFERENCE), **options},
        "required": [name, *(["returns"] if "returns" in options else [])],
        "additionalProperties": False,
    }
