"""Aggregates as YAML writes them: `mean(temperature)`, `top(3, tag, by=uses)`, `quantiles(latency, 0.5, 0.99)`.

The text is read as a call of names and constants; it is never run.
"""

import ast
from collections.abc import Callable
from typing import Any

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import aggregates
from penstock.pipelines.model.words import called, known
from penstock.pipelines.plan.aggregates import Aggregate, Custom
from penstock.pipelines.plan.custom import combiner_ref, imported

FIX = "Write a call, as in mean(temperature) or count()"
AGGREGATES: dict[str, Callable[..., Any]] = {
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


def aggregate_from_text(text: object, field: str) -> Aggregate:
    """Read one aggregate; `{combine: module:name, fields: [..]}` names a combiner of one's own."""
    if isinstance(text, dict) and "combine" in text:
        return combined(text, field)
    return from_call(parsed(text, field), field)


def from_call(call: ast.Call, field: str) -> Aggregate:
    """Read a call; inside of `of` stands another one."""
    word = known(str(constant(call.func, field)), AGGREGATES, field)
    positional = [
        from_call(item, f"{field}.{word}")
        if word == "of" and isinstance(item, ast.Call)
        else constant(item, field)
        for item in call.args
    ]
    named = {item.arg: constant(item.value, field) for item in call.keywords if item.arg is not None}
    found: Aggregate = called(AGGREGATES[word], positional, named, f"{field}.{word}")
    return found


def combined(node: dict[str, Any], field: str) -> Custom:
    """Find a combiner by name."""
    fields = node.get("fields") or []
    if not isinstance(fields, list):
        raise DefinitionError(f"{field}.fields", repr(fields), "Write a list of field names")
    found = imported(str(node["combine"]), f"{field}.combine")
    return Custom(tuple(fields), combiner_ref(found, node.get("version")))


def parsed(text: object, field: str) -> ast.Call:
    """Read the text as a call."""
    try:
        found = ast.parse(str(text).strip(), mode="eval").body
    except SyntaxError:
        found = None
    if not isinstance(found, ast.Call):
        raise DefinitionError(field, repr(text), FIX)
    return found


def constant(node: ast.expr, field: str) -> Any:
    """Return a constant; a bare name stands for itself."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    raise DefinitionError(field, ast.unparse(node), FIX)
