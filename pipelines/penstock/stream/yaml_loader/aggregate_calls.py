"""Aggregates in YAML: `mean(temperature)`, `top(3, tag, by=uses)`, `quantiles(latency, 0.5, 0.99)`.

The text is parsed as a call with names and constants. It is never executed. An aggregate of your own is called by
its keyword, or by `module:name`, as in `mypackage.statistics:geometric_mean(temperature)`.
"""

import ast
import re
from inspect import Parameter, signature
from typing import Any

from penstock.engine.aggregates import Aggregate
from penstock.engine.aggregates.custom import Custom
from penstock.engine.definition.keyword import call_with_arguments, find_keyword
from penstock.engine.definition.user_functions import combiner_ref, import_by_name
from penstock.engine.errors import DefinitionError
from penstock.stream.keyword_registries import AGGREGATE_KEYWORDS, find_nested_registry
from penstock.stream.yaml_loader.keywords import list_positional_parameters

AGGREGATE_CALL_HINT = "Write a call, as in mean(temperature) or count()"

_REFERENCE_PATTERN = re.compile(r"""('[^']*'|"[^"]*")|\b([A-Za-z_][\w.]*):([A-Za-z_]\w*)(?=\s*\()""")
"""A text in quotes, or the `module:name` of a call."""
_COLON_SUBSTITUTE = "\N{MIDDLE DOT}"
"""Stands for the colon of `module:name` while the text is parsed: Python accepts it in names."""


def parse_aggregate(text: object, field: str) -> Aggregate:
    """Parse an aggregate; `{combine: module:name, fields: [..]}` names a user-defined combiner."""
    if isinstance(text, dict) and "combine" in text:
        return parse_combiner(text, field)
    return parse_call(parse_expression(text, field), field)


def parse_call(call: ast.Call, field: str) -> Aggregate:
    """Parse a call. Arguments that are aggregates, as that of `of`, are calls, too."""
    name = parse_function_name(call.func, field)
    function = find_keyword(name, AGGREGATE_KEYWORDS, field)
    function_signature = signature(function, eval_str=True)
    parameters = list_positional_parameters(function_signature, len(call.args))
    call_field = f"{field}.{name}"
    positional = [
        parse_argument(argument, parameter, field, call_field)
        for argument, parameter in zip(call.args, parameters, strict=True)
    ]
    named = {
        argument.arg: parse_argument(
            argument.value, function_signature.parameters.get(argument.arg), field, call_field
        )
        for argument in call.keywords
        if argument.arg is not None
    }
    parsed_aggregate: Aggregate = call_with_arguments(function, positional, named, call_field)
    return parsed_aggregate


def parse_argument(node: ast.expr, parameter: Parameter | None, field: str, call_field: str) -> Any:
    """Return an aggregate if the parameter takes one, as its annotation says; else a constant."""
    takes_aggregate = parameter is not None and find_nested_registry(parameter) is AGGREGATE_KEYWORDS
    if takes_aggregate and isinstance(node, ast.Call):
        return parse_call(node, call_field)
    return parse_constant(node, field)


def parse_function_name(node: ast.expr, field: str) -> str:
    """Return the keyword of a call, or its `module:name`."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = ast.unparse(node)
        if isinstance(node, ast.Name) or _COLON_SUBSTITUTE in name:
            return name.replace(_COLON_SUBSTITUTE, ":")
    raise DefinitionError(field, ast.unparse(node), AGGREGATE_CALL_HINT)


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
        source = _REFERENCE_PATTERN.sub(_substitute_colon, str(text).strip())
        expression = ast.parse(source, mode="eval").body
    except SyntaxError:
        expression = None
    if not isinstance(expression, ast.Call):
        raise DefinitionError(field, repr(text), AGGREGATE_CALL_HINT)
    return expression


def _substitute_colon(match: re.Match[str]) -> str:
    quoted, module, name = match.groups()
    return quoted or f"{module}{_COLON_SUBSTITUTE}{name}"


def parse_constant(node: ast.expr, field: str) -> Any:
    """Return a constant. A name, and the path to a member such as `address.zip`, is the string of that name."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute() if _is_path(node):
            return ast.unparse(node)
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    raise DefinitionError(field, ast.unparse(node), AGGREGATE_CALL_HINT)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and _COLON_SUBSTITUTE not in ast.unparse(node)
