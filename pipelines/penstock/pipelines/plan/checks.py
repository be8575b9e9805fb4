"""Small checks that the plan's parts share: each says the field, what was found, and the fix."""

import re
from types import UnionType

from penstock.pipelines.errors import DefinitionError

LONGEST = 10**15
"""Milliseconds of the longest duration, 31,688 years: sums of times and durations stay far from where time ends."""

_LONGEST_NAME = 200
"""Folders have names of 255 letters at most, topics of 249, and some of ours have a word more."""
_PLACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def require(condition: bool, field: str, found: object, fix: str) -> None:
    """Raise a `DefinitionError` unless the condition holds."""
    if not condition:
        raise DefinitionError(field, found, fix)


def of_kind(value: object, kind: type | UnionType, field: str, fix: str) -> None:
    """Refuse what is something else than belongs there, as a text in the place of a window."""
    require(isinstance(value, kind), field, repr(value), fix)


def called_as_a_place(value: str, field: str) -> None:
    """Refuse a name that cannot be one of a table, a topic and a folder."""
    named(value, field)
    fix = "Use letters, digits, and _ - . after the first: it is the name of a folder, too"
    require(_PLACE.fullmatch(value) is not None, field, repr(value), fix)
    require(len(value) <= _LONGEST_NAME, field, repr(value), f"Use {_LONGEST_NAME} letters at most")


def positive(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse what is not a whole number above zero."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value > 0, field, f"{value!r}", f"Give a whole number of {unit} above 0")
    require(value <= LONGEST, field, f"{value!r}", f"Give {LONGEST} {unit} at most")


def not_negative(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse what is not a whole number of at least zero."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= 0, field, f"{value!r}", f"Give a whole number of {unit}, 0 or more")
    require(value <= LONGEST, field, f"{value!r}", f"Give {LONGEST} {unit} at most")


def one_of(value: str, allowed: tuple[str, ...], field: str) -> None:
    """Refuse a word that is not in the list, and name the list."""
    require(value in allowed, field, f"{value!r}", f"Write one of: {', '.join(allowed)}")


def named(value: str, field: str) -> None:
    """Refuse an empty name."""
    require(isinstance(value, str) and bool(value.strip()), field, f"{value!r}", "Give a name")
