"""Windows, triggers, policies, aggregates and sinks as calls of their keywords: the inverse of the keywords.

A field of a kind is the argument of the same name, or of the same position. A call is used only if it gives an
equal part, so a kind that is written otherwise is refused and never written wrong.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import timedelta
from inspect import Parameter, signature
from typing import Any, TypeAlias, get_args

from penstock.core.kind_registry import KindRegistry
from penstock.engine.definition.condition_text import format_condition
from penstock.engine.definition.keyword import KeywordFunction
from penstock.engine.definition.phrases import format_duration
from penstock.engine.definition.predicates import Predicate
from penstock.engine.errors import DefinitionError
from penstock.stream.keyword_registries import find_nested_registry


class DurationText(str):
    """A duration, which SQL writes as an interval."""

    __slots__ = ()


@dataclass(frozen=True)
class KindCall:
    """A call of a keyword, with its arguments as users write them."""

    keyword: str
    function: KeywordFunction
    positional: "tuple[CallValue, ...]" = ()
    named: "dict[str, CallValue]" = field(default_factory=dict)


CallValue: TypeAlias = "KindCall | str | int | float | bool | None"


def describe_kind(part: object, registry: KindRegistry[KeywordFunction], section: str) -> KindCall:
    """Return the call that gives this part."""
    keywords = list(_find_keywords(part, registry))
    for keyword, function in keywords:
        call = _try_call(part, keyword, function)
        if call is not None:
            return call
    name = type(part).__name__
    problem = f"{name} is Python code without a keyword" if not keywords else f"no keyword gives this {name}"
    fix = "Keep the pipeline in Python, or mark a function with @keyword whose arguments are the fields"
    raise DefinitionError(section, problem, f"{fix} of the {registry.noun}")


def _find_keywords(
    part: object, registry: KindRegistry[KeywordFunction]
) -> Iterator[tuple[str, KeywordFunction]]:
    """Yield the keywords that return parts of this class: registered ones, then those of its own module."""
    for keyword, function in registry.kinds_by_name.items():
        if not isinstance(function, type) and _returned_class(function) is type(part):
            yield keyword, function
    module = type(part).__module__
    for name, function in vars(sys.modules[module]).items():
        if hasattr(function, "keyword") and _returned_class(function) is type(part):
            yield f"{module}:{name}", function


def _returned_class(function: KeywordFunction) -> Any:
    return signature(function, eval_str=True).return_annotation


def _try_call(part: Any, keyword: str, function: KeywordFunction) -> KindCall | None:
    """Return the call of a function that gives an equal part; None if it gives another one."""
    parameters = list(signature(function, eval_str=True).parameters.values())
    positional: list[CallValue] = []
    named: dict[str, CallValue] = {}
    plain_positional: list[Any] = []
    plain_named: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        value = _field_value(part, parameter.name, number)
        if parameter.kind is Parameter.VAR_POSITIONAL:
            plain_positional += value
            positional += [_describe_value(item, parameter, keyword) for item in value]
        elif value != parameter.default:
            described = _describe_value(value, parameter, keyword)
            plain_value = described if isinstance(described, str) else value
            may_lead = parameter.default is Parameter.empty or (
                number == 0 and not isinstance(described, KindCall)
            )
            if number == len(positional) and may_lead and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD:
                positional.append(described)
                plain_positional.append(plain_value)
            else:
                named[parameter.name] = described
                plain_named[parameter.name] = plain_value
    try:
        is_equal = function(*plain_positional, **plain_named) == part
    except (DefinitionError, TypeError):
        is_equal = False
    return KindCall(keyword, function, tuple(positional), named) if is_equal else None


def _field_value(part: Any, name: str, number: int) -> Any:
    """Return the field of the argument with this name, or at this position."""
    known_fields = [each.name for each in fields(part)]
    if name in known_fields:
        return getattr(part, name)
    return getattr(part, known_fields[number]) if number < len(known_fields) else None


def _describe_value(value: Any, parameter: Parameter, keyword: str) -> CallValue:
    registry = find_nested_registry(parameter)
    if registry is not None and value is not None:
        return describe_kind(value, registry, keyword)
    if is_dataclass(value) and isinstance(value, Predicate):
        return format_condition(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and timedelta in (parameter.annotation, *get_args(parameter.annotation)):
        return DurationText(format_duration(value))
    plain_value: CallValue = value
    return plain_value
