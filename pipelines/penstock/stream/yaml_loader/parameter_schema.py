"""JSON Schemas of the parameters of functions, from their annotations."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from penstock.core.duration import DURATION_PATTERN
from penstock.engine.definition.keyword import KeywordFunction
from penstock.stream.keyword_registries import NESTED_KEYWORDS

JsonSchema: TypeAlias = dict[str, Any]

DURATION_SCHEMA: JsonSchema = {"$ref": "#/$defs/duration"}
DURATION_DEFINITION: JsonSchema = {
    "description": "A duration, such as 30 seconds, 1h30m, PT1H, or a number of milliseconds.",
    "anyOf": [{"type": "string", "pattern": DURATION_PATTERN}, {"type": "integer", "minimum": 0}],
}
PLAIN_TYPES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}


def keyword_schema(function: KeywordFunction) -> JsonSchema:
    """Return the schema of the arguments of a keyword: a mapping, a list, or the only argument itself."""
    parameters = list(list_parameters(function).values())
    positional = [each for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
    schemas = [annotation_schema(each.annotation) for each in positional]
    choices = [*schemas[:1], {"type": "array", "items": {"anyOf": schemas}}] if schemas else []
    return {
        "anyOf": [
            parameters_schema(function),
            *choices,
            *([] if requires_argument(function) else [{"type": "null"}]),
        ]
    }


def parameters_schema(
    function: Any, without: Sequence[str] = (), additional: Mapping[str, JsonSchema] | None = None
) -> JsonSchema:
    """Return the schema of a mapping with the parameters of a function by name."""
    named = {
        name: parameter
        for name, parameter in list_parameters(function).items()
        if name not in ("self", *without)
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    }
    properties = {name: annotation_schema(each.annotation) for name, each in named.items()}
    required = [
        name
        for name, each in named.items()
        if each.default is Parameter.empty and name not in (additional or {})
    ]
    schema: JsonSchema = {
        "type": "object",
        "properties": {**properties, **(additional or {})},
        "additionalProperties": False,
    }
    return {**schema, "required": required} if required else schema


def list_parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a function. An annotation that only type checkers can evaluate is `Any`."""
    parameters = signature(function).parameters
    return {
        name: each.replace(annotation=_evaluate_annotation(each.annotation, function))
        for name, each in parameters.items()
    }


def _evaluate_annotation(annotation: Any, function: Callable[..., Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    holder = type("Holder", (), {"__annotations__": {"value": annotation}})
    try:
        return get_type_hints(holder, inspect.unwrap(function).__globals__)["value"]
    except NameError:
        return Any


def requires_argument(function: KeywordFunction) -> bool:
    """Whether a function cannot be called without arguments."""
    return any(
        each.default is Parameter.empty and each.kind is not Parameter.VAR_KEYWORD
        for each in list_parameters(function).values()
    )


def annotation_schema(annotation: Any) -> JsonSchema:
    """Return the schema of the values that YAML may have for an annotation; everything for other annotations."""
    for part_class, registry in NESTED_KEYWORDS:
        if isinstance(annotation, type) and issubclass(annotation, part_class):
            return {"$ref": f"#/$defs/{registry.noun}"}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in PLAIN_TYPES:
        return {"type": PLAIN_TYPES[annotation]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return _union_schema(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": annotation_schema(arguments[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": annotation_schema(arguments[0])}
    return {}


def _union_schema(arguments: Sequence[Any]) -> JsonSchema:
    """Return the schema of a union; text, number and timedelta together are a duration."""
    remaining = list(arguments)
    choices: list[JsonSchema] = []
    if timedelta in remaining:
        remaining = [each for each in remaining if each not in (timedelta, str, int)]
        choices.append(DURATION_SCHEMA)
    choices += [annotation_schema(each) for each in remaining]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}
