"""Constants, arguments and assignments as Python text."""

import json
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any


def quote(value: Any) -> str:
    """Return a constant as Python, with double quotes."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(str(value))
        case dict():
            return f"{{{', '.join(f'{quote(name)}: {quote(each)}' for name, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(quote, value))}]"
    return repr(value)


def write_named(arguments: dict[str, str]) -> list[str]:
    """Return arguments by name; in a mapping if a name is no identifier."""
    if all(name.isidentifier() and not iskeyword(name) for name in arguments):
        return [f"{name}={quote(value)}" for name, value in arguments.items()]
    return [f"**{quote(arguments)}"]


def assign(variable: str, calls: Sequence[str]) -> str:
    """Return an assignment with one call in each line."""
    first, *others = calls
    lines = [f"{variable} = (", f"    {first}", *(f"    .{call}" for call in others), ")"]
    return "\n".join(lines)
