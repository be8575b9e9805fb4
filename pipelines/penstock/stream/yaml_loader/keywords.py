"""The keywords of YAML definitions, and their conversion to parts of a plan.

`{keyword: value}` calls the function of that name: a mapping gives named arguments, a list positional arguments,
and any other value is the only argument. A keyword alone is a call without arguments.
"""

from collections.abc import Mapping
from inspect import Parameter, Signature, signature
from typing import Any

from penstock.core.kind_registry import KindRegistry
from penstock.core.names import list_names
from penstock.engine.definition.keyword import KeywordFunction, call_with_arguments, find_keyword
from penstock.engine.errors import DefinitionError
from penstock.stream.keyword_registries import find_nested_registry


def parse_keyword(node: object, registry: KindRegistry[KeywordFunction], field: str) -> Any:
    """Convert a keyword and its arguments to a part of a plan. Arguments may be keywords themselves."""
    keyword, value = split_keyword(node, registry, field)
    function = find_keyword(keyword, registry, field)
    keyword_field = f"{field}.{keyword}"
    function_signature = signature(function, eval_str=True)
    positional, named = split_arguments(value, function_signature)
    parameters = function_signature.parameters
    return call_with_arguments(
        function,
        [
            parse_argument(argument, parameter, keyword_field)
            for argument, parameter in zip(
                positional, list_positional_parameters(function_signature, len(positional)), strict=True
            )
        ],
        {
            name: parse_argument(argument, parameters.get(name), f"{keyword_field}.{name}")
            for name, argument in named.items()
        },
        keyword_field,
    )


def parse_argument(node: object, parameter: Parameter | None, field: str) -> Any:
    """Convert an argument to a part of a plan if its parameter takes one; null is None."""
    registry = None if parameter is None else find_nested_registry(parameter)
    return node if registry is None or node is None else parse_keyword(node, registry, field)


def split_keyword(node: object, registry: KindRegistry[KeywordFunction], field: str) -> tuple[str, object]:
    """Split a node into its keyword and the value."""
    if isinstance(node, str):
        return node, None
    if isinstance(node, Mapping) and len(node) == 1:
        ((keyword, value),) = node.items()
        return str(keyword), value
    for keyword in node if isinstance(node, Mapping) else ():
        find_keyword(str(keyword), registry, field)
    known_names = list_names("", registry.kinds_by_name)
    raise DefinitionError(field, repr(node), f"Write one of these, with its arguments: {known_names}")


def split_arguments(value: object, function_signature: Signature) -> tuple[list[Any], dict[str, Any]]:
    """Split a value into positional and named arguments."""
    if value is None:
        return [], {}
    if isinstance(value, list):
        return list(value), {}
    if isinstance(value, Mapping) and not is_nested_keyword(value, function_signature):
        return [], {str(name): item for name, item in value.items()}
    return [value], {}


def is_nested_keyword(value: Mapping[Any, Any], function_signature: Signature) -> bool:
    """Return whether a mapping is the keyword of a nested part, as in `repeatedly: {after_count: 1}`."""
    (first_parameter,) = list_positional_parameters(function_signature, 1)
    registry = find_nested_registry(first_parameter) if first_parameter else None
    if registry is None or len(value) != 1:
        return False
    (name,) = value
    return name not in function_signature.parameters or name in registry.kinds_by_name


def list_positional_parameters(function_signature: Signature, number: int) -> list[Parameter | None]:
    """Return the parameters of this many positional arguments; None for arguments that are too many."""
    parameters = tuple(function_signature.parameters.values())
    variadic = next((item for item in parameters if item.kind is Parameter.VAR_POSITIONAL), None)
    by_position = [
        item
        for item in parameters
        if item.kind in {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
    ]
    return [*by_position, *[variadic] * max(0, number - len(by_position))][:number]
