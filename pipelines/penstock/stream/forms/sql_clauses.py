"""Clauses of a query as SQL text: SELECT, the tables of UNION ALL, the columns of a join, and EMIT."""

from collections.abc import Mapping
from typing import Any

from penstock.stream.forms.kind_calls import KindCall
from penstock.stream.forms.sql_text import quote_name, write_call, write_value

_LINE_LENGTH = 100


def write_items(items: list[str]) -> str:
    """Return the SELECT clause; a long one has a line for each item."""
    line = f"SELECT {', '.join(items)}"
    return line if len(line) <= _LINE_LENGTH else "SELECT\n  " + ",\n  ".join(items)


def unite(sources: list[str]) -> str:
    """Return one table with the rows of all sources."""
    if len(sources) == 1:
        return sources[0]
    return f"({' UNION ALL '.join(f'SELECT * FROM {source}' for source in sources)})"


def write_taken(name: str, path: str) -> str:
    """Return a column of a join: `views.page AS page`."""
    column = path.rpartition(".")[2]
    source = ".".join(quote_name(part) for part in path.rsplit(".", 1))
    return source if column == name else f"{source} AS {quote_name(name)}"


def write_emit(sections: Mapping[str, Any]) -> list[str]:
    """Return the EMIT clause: the trigger, its options, and the accumulation."""
    options = dict(sections.get("trigger", {}))
    trigger: KindCall | None = options.pop("trigger", None)
    words = [write_call(trigger)] if trigger is not None else []
    for name, value in options.items():
        is_word = name in ("on_time_pane", "final_pane")
        words.append(
            name.upper()
            if value is True
            else f"{name.upper()} {value.upper() if is_word else write_value(value)}"
        )
    if "accumulation" in sections:
        words.append(sections["accumulation"].upper())
    return [f"EMIT {' '.join(words)}"] if words else []
