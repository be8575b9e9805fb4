"""Parts of a plan in the words of a definition: `after_watermark(early=every(10 seconds))`."""

import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from typing import Any

from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.definition.durations import Duration
from penstock.engine.definition.keyword import KeywordFunction
from penstock.engine.definition.phrases import format_duration
from penstock.engine.definition.predicates import Predicate, predicate_sql
from penstock.engine.definition.user_functions import CombinerRef, FunctionRef
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import FilterStep, SelectStep, SqlStep

MAX_TEXT_LENGTH = 60
"""Longer texts, such as SQL, are cut."""


def describe_part(part: object) -> str:
    """Return a part of a plan on one line, as a user would write it. A number of milliseconds is a duration."""
    match part:
        case None:
            return "absent"
        case bool():
            return str(part).lower()
        case int():
            return format_duration(part)
        case tuple():
            return f"[{', '.join(map(describe_part, part))}]" if part else "none"
        case AggregateOutput():
            return describe_part(part.aggregate)
        case type():
            return part.__name__
        case Column():
            return f"{part.type}{', required' if part.required else ''}"
        case FunctionRef() | CombinerRef():
            return f"{part.name} ({part.fingerprint.rpartition(':')[2][:8]})"
        case FilterStep():
            return f"filter({_describe_condition(part.condition)})"
        case SelectStep():
            columns = (new if new == old else f"{new}={old}" for new, old in part.columns)
            return f"select({', '.join(columns)})"
        case SqlStep():
            return f"sql({_shorten(part.text)})"
        case _ if isinstance(part, Predicate):
            return _describe_condition(part)
        case _ if is_dataclass(part):
            return _describe_dataclass(part)
    return str(part)


def _describe_dataclass(part: Any) -> str:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    defaults = {field.name: field.default for field in fields(part)}
    function = _find_keyword_function(type(part))
    if function is None and isinstance(part, Aggregate):
        return part.describe_call()
    if function is not None:
        return f"{function.__dict__['keyword']}({_describe_call(function, values, defaults)})"
    options = [
        f"{name}={describe_part(value)}"
        for name, value in values.items()
        if value not in (None, defaults[name])
    ]
    return ", ".join(options) or "none"


def _find_keyword_function(part_class: type) -> KeywordFunction | None:
    """Return the function that users call to make such a part. It is in the module of the class."""
    functions: list[KeywordFunction] = [
        member
        for member in vars(sys.modules[part_class.__module__]).values()
        if "keyword" in getattr(member, "__dict__", {}) and callable(member)
    ]
    return next(
        (
            function
            for function in functions
            if signature(function, eval_str=True).return_annotation is part_class
        ),
        None,
    )


def _describe_call(
    function: KeywordFunction, values: Mapping[str, object], defaults: Mapping[str, object]
) -> str:
    """Return the arguments of a call. Parameters without a field of their name take the other fields in order."""
    arguments: list[str] = []
    parameters = signature(function, eval_str=True).parameters
    other_fields = iter([name for name in values if name not in parameters])
    for parameter in parameters.values():
        name = parameter.name if parameter.name in values else next(other_fields)
        value = values[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            arguments += [describe_part(item) for item in (value if isinstance(value, tuple) else (value,))]
        elif parameter.default is Parameter.empty:
            arguments.append(_describe_argument(parameter, value))
        elif value not in (None, defaults[name], parameter.default):
            arguments.append(f"{parameter.name}={_describe_argument(parameter, value)}")
    return ", ".join(arguments)


def _describe_argument(parameter: Parameter, value: object) -> str:
    is_duration = parameter.annotation in (Duration, Duration | None)
    return describe_part(value) if is_duration or not isinstance(value, int) else str(value)


def _describe_condition(condition: Predicate) -> str:
    return _shorten(re.sub(r"`(\w+)`", r"\1", predicate_sql(condition)))


def _shorten(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= MAX_TEXT_LENGTH else f"{one_line[: MAX_TEXT_LENGTH - 1]}…"
