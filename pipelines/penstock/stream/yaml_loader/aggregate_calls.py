"""Aggregates in YAML: `mean(temperature)`, `top(3, tag, by=uses)`, `quantiles(latency, 0.5, 0.99)`.

The text is parsed as a call with names and constants. It is never executed.
"""

import ast
from collections.abc import Callable
from typing import Any

from penstock.engine.definition.keyword import call_with_arguments
from penstock.engine.definition.user_functions import combiner_ref, import_by_name
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.aggregates import Aggregate, Custom
from penstock.stream import aggregates
from penstock.stream.yaml_loader.keywords import require_known_name

AGGREGATE_CALL_HINT = "Write a call, as in mean(temperature) or count()"
AGGREGATE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": aggregates.count,
    "sum": aggregates.sum_,
    "mean": aggregates.mean,
    "min": aggregates.min_,
    "max": aggregates.max_,
    "first": aggregates.first,
    "last": aggregates.last,
    "distinct": aggregates.distinct,
    "top": aggregates.top,
    "quantiles": aggregates.quantiles,
    "collect": aggregates.collect,
    "of": aggregates.of,
}


def parse_aggregate(text: object, field: str) -> Aggregate:
    """Parse an aggregate; `{combine: module:name, fields: [..]}` names a user-defined combiner."""
    if isinstance(text, dict) and "combine" in text:
        return parse_combiner(text, field)
    return parse_call(parse_expression(text, field), field)


def parse_call(call: ast.Call, field: str) -> Aggregate:
    """Parse a call. The argument of `of` is a call, too."""
    function_name = require_known_name(str(parse_constant(call.func, field)), AGGREGATE_FUNCTIONS, field)
    positional = [
        parse_call(argument, f"{field}.{function_name}")
        if function_name == "of" and isinstance(argument, ast.Call)
        else parse_constant(argument, field)
        for argument in call.args
    ]
    named = {
        argument.arg: parse_constant(argument.value, field)
        for argument in call.keywords
        if argument.arg is not None
    }
    parsed_aggregate: Aggregate = call_with_arguments(
        AGGREGATE_FUNCTIONS[function_name], positional, named, f"{field}.{function_name}"
    )
    return parsed_aggregate


def parse_combiner(node: dict[str, Any], field: str) -> Custom:
    """Import a combiner by name."""
    fields = node.get("fields") or []
    if not isinstance(fields, list):
        raise DefinitionError(f"{field}.fields", repr(fields), "Write a list of field names")
    combiner = import_by_name(str(node["combine"]), f"{field}.combine")
    return Custom(tuple(fields), combiner_ref(combiner, node.get("version")))


def parse_expression(text: object, field: str) -> ast.Call:
    """Parse the text as a call expression."""
    try:
        expression = ast.parse(str(text).strip(), mode="eval").body
    except SyntaxError:
        expression = None
    if not isinstance(expression, ast.Call):
        raise DefinitionError(field, repr(text), AGGREGATE_CALL_HINT)
    return expression


def parse_constant(node: ast.expr, field: str) -> Any:
    """Return a constant. A name is the string of that name."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    raise DefinitionError(field, ast.unparse(node), AGGREGATE_CALL_HINT)
