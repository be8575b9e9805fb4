"""Names, values and calls as SQL text."""

import re
from collections.abc import Mapping
from inspect import signature
from typing import Any

from penstock.stream.forms.kind_calls import DurationText, KindCall

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE_DURATION = re.compile(r"(\d+) ([a-z]+)")
RESERVED_WORDS = frozenset({
    "ALL", "AND", "ANTI", "AS", "BY", "CAST", "CLUSTER", "CROSS", "DISTINCT", "DISTRIBUTE", "EMIT", "FALSE", "FROM",
    "FULL", "GROUP", "HAVING", "INNER", "INTERVAL", "INTO", "JOIN", "LATERAL", "LEFT", "LIMIT", "NULL", "ON", "OR",
    "ORDER", "OUTER", "QUALIFY", "RIGHT", "SELECT", "SEMI", "SORT", "TABLE", "TRUE", "UNION", "USING", "WHERE",
    "WINDOW", "WITH",
})  # fmt: skip
"""Names that are written in backticks."""


def quote_name(name: str) -> str:
    """Return a name, in backticks if it is no plain one."""
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in RESERVED_WORDS
    return name if is_plain else f"`{name}`"


def quote_path(path: str) -> str:
    """Return a column, or the path to a member of a struct."""
    return ".".join(quote_name(part) for part in path.split("."))


def quote_text(text: str) -> str:
    """Return a text in quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def write_value(value: Any) -> str:
    """Return a value: a duration as an interval, columns with types, a list, a call or a constant."""
    match value:
        case DurationText():
            simple = _SIMPLE_DURATION.fullmatch(value)
            return f"INTERVAL '{simple[1]}' {simple[2].upper()}" if simple else f"INTERVAL '{value}'"
        case str():
            return quote_text(value)
        case bool() | None:
            return str(value).upper().replace("NONE", "NULL")
        case KindCall():
            return write_call(value)
        case Mapping():
            return f"({', '.join(f'{quote_name(name)} {write_type(each)}' for name, each in value.items())})"
        case list():
            return f"({', '.join(write_value(item) for item in value)})"
    return repr(value)


def write_type(column_type: str) -> str:
    """Return a type; one with commas in angle brackets as a text."""
    return quote_text(column_type) if "<" in column_type else column_type


def write_call(call: KindCall) -> str:
    """Return the call of a window, trigger or policy, under its standard name if it has one."""
    standard_name = str(getattr(call.function, "sql_name", ""))
    positional, named = list(call.positional), dict(call.named)
    if order := getattr(call.function, "sql_arguments", ()):
        by_name = dict(zip(signature(call.function).parameters, call.positional, strict=False))
        positional = [by_name[name] for name in order if name in by_name]
    arguments = [f"{name.upper()} => {write_value(value)}" for name, value in named.items()]
    name = standard_name or write_keyword_name(call.keyword)
    return f"{name}({', '.join([*map(write_value, positional), *arguments])})"


def write_sink(call: KindCall) -> str:
    """Return the call of a sink, whose first argument is a table."""
    table, *others = call.positional
    arguments = [f"{name.upper()} => {write_value(value)}" for name, value in call.named.items()]
    arguments = [write_table(str(table)), *map(write_value, others), *arguments]
    return f"{write_keyword_name(call.keyword)}({', '.join(arguments)})"


def write_table(name: str) -> str:
    """Return the name of a table or topic; as a text if it is no plain name."""
    return name if quote_name(name) == name else quote_text(name)


def write_keyword_name(keyword: str) -> str:
    """Return a keyword in upper case, or `module:name` in backticks."""
    return f"`{keyword}`" if ":" in keyword else keyword.upper()


def write_aggregate(call: KindCall) -> str:
    """Return the call of an aggregate, whose texts are columns: `TOP(3, tag, BY => uses)`."""
    if call.keyword == "count" and not call.positional and not call.named:
        return "COUNT(*)"
    if call.keyword == "distinct" and not call.named:
        return f"COUNT(DISTINCT {', '.join(map(_write_column, call.positional))})"
    name = str(getattr(call.function, "sql_name", "")) or write_keyword_name(call.keyword)
    named = [f"{argument.upper()} => {_write_column(value)}" for argument, value in call.named.items()]
    return f"{name}({', '.join([*map(_write_column, call.positional), *named])})"


def _write_column(value: Any) -> str:
    match value:
        case KindCall():
            return write_aggregate(value)
        case str():
            return quote_path(value)
    return write_value(value)


def write_options(options: Mapping[str, Any]) -> str:
    """Return the options after a topic."""
    pairs = [f"{quote_name(name)} = {write_value(value)}" for name, value in options.items()]
    return f" WITH ({', '.join(pairs)})" if pairs else ""


def write_table_function(keyword: str, source: str, value: Any, options: Mapping[str, Any]) -> str:
    """Return a table function over a source: `TABLE(LOOKUP(TABLE cards, ...))`."""
    arguments = [source if source.startswith("TABLE(") else f"TABLE {source}"] if source else []
    arguments += [write_value(value)] if value is not None else []
    arguments += [f"{name.upper()} => {write_value(each)}" for name, each in options.items()]
    return f"TABLE({keyword.upper()}({', '.join(arguments)}))"
