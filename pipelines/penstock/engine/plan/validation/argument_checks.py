"""Small checks that the plan's parts share: each says the field, what was found, and the fix."""

import re
from types import UnionType

from penstock.engine.errors import DefinitionError

MAX_DURATION_MS = 10**15
"""Milliseconds of the longest duration, 31,688 years: sums of times and durations stay far from where time ends."""

_MAX_NAME_LENGTH = 200
"""Folders have names of 255 letters at most, topics of 249, and some of ours have a word more."""
_STORAGE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def require(condition: bool, field: str, problem: object, fix: str) -> None:
    """Raise a `DefinitionError` unless the condition holds."""
    if not condition:
        raise DefinitionError(field, problem, fix)


def require_type(value: object, kind: type | UnionType, field: str, fix: str) -> None:
    """Refuse what is something else than belongs there, as a text in the place of a window."""
    require(isinstance(value, kind), field, repr(value), fix)


def require_storage_name(value: str, field: str) -> None:
    """Refuse a name that cannot be one of a table, a topic and a folder."""
    require_name(value, field)
    fix = "Use letters, digits, and _ - . after the first: it is the name of a folder, too"
    require(_STORAGE_NAME_PATTERN.fullmatch(value) is not None, field, repr(value), fix)
    require(len(value) <= _MAX_NAME_LENGTH, field, repr(value), f"Use {_MAX_NAME_LENGTH} letters at most")


def require_positive(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse what is not a whole number above zero."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    require(is_integer and value > 0, field, f"{value!r}", f"Give a whole number of {unit} above 0")
    require(value <= MAX_DURATION_MS, field, f"{value!r}", f"Give {MAX_DURATION_MS} {unit} at most")


def require_non_negative(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse what is not a whole number of at least zero."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    require(is_integer and value >= 0, field, f"{value!r}", f"Give a whole number of {unit}, 0 or more")
    require(value <= MAX_DURATION_MS, field, f"{value!r}", f"Give {MAX_DURATION_MS} {unit} at most")


def require_one_of(value: str, allowed: tuple[str, ...], field: str) -> None:
    """Refuse a word that is not in the list, and name the list."""
    require(value in allowed, field, f"{value!r}", f"Write one of: {', '.join(allowed)}")


def require_name(value: str, field: str) -> None:
    """Refuse an empty name."""
    require(isinstance(value, str) and bool(value.strip()), field, f"{value!r}", "Give a name")
