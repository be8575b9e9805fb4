"""Argument checks for parts of a plan. Each error names the field, the problem and the fix."""

import re
from collections.abc import Iterable, Mapping
from types import FunctionType, UnionType

from penstock.core.names import NO_SYNONYMS, suggest_name, suggest_or_list
from penstock.engine.errors import DefinitionError, UnknownNameError

MAX_DURATION_MS = 10**15
"""The longest duration, 31,688 years, so that sums of times and durations do not overflow."""

_MAX_NAME_LENGTH = 200
"""The longest name. Folder names are limited to 255 characters and topics to 249, and some names get a suffix."""
_STORAGE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def require(condition: bool, field: str, problem: object, fix: str) -> None:
    """Raise a `DefinitionError` unless the condition holds."""
    if not condition:
        raise DefinitionError(field, problem, fix)


def require_type(value: object, kind: type | UnionType, field: str, fix: str) -> None:
    """Refuse a value of the wrong type, as in a text instead of a window."""
    if isinstance(value, FunctionType) and not isinstance(value, kind):
        name = value.__name__
        raise DefinitionError(field, f"{name} is a function that is not called", f"Write {name}(...)")
    require(isinstance(value, kind), field, repr(value), fix)


def require_storage_name(value: str, field: str) -> None:
    """Refuse a name that is not valid for tables, topics and folders."""
    require_name(value, field)
    fix = "Use letters, digits, _, - and ., starting with a letter, digit or _"
    require(_STORAGE_NAME_PATTERN.fullmatch(value) is not None, field, repr(value), fix)
    require(len(value) <= _MAX_NAME_LENGTH, field, repr(value), f"Use at most {_MAX_NAME_LENGTH} characters")


def require_positive(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse a value that is not a positive integer."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    require(is_integer and value > 0, field, f"{value!r}", f"Give a whole number of {unit} above 0")
    require(value <= MAX_DURATION_MS, field, f"{value!r}", f"Give at most {MAX_DURATION_MS} {unit}")


def require_non_negative(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse a value that is not an integer of 0 or more."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    require(is_integer and value >= 0, field, f"{value!r}", f"Give a whole number of {unit}, 0 or more")
    require(value <= MAX_DURATION_MS, field, f"{value!r}", f"Give at most {MAX_DURATION_MS} {unit}")


def require_one_of(
    value: str, allowed: tuple[str, ...], field: str, synonyms: Mapping[str, str] = NO_SYNONYMS
) -> None:
    """Refuse a value that is not in the list. The error names the list and the nearest value."""
    if not isinstance(value, str) or value not in allowed:
        suggestion = suggest_name(value, allowed, synonyms).lstrip() if isinstance(value, str) else ""
        fix = f"{suggestion} Write one of: {', '.join(allowed)}".lstrip()
        raise UnknownNameError(field, f"{value!r} is not known", fix, name=str(value))


def require_known_name(
    name: str,
    known_names: Iterable[str],
    field: str,
    problem: str,
    label: str,
    synonyms: Mapping[str, str] = NO_SYNONYMS,
) -> None:
    """Refuse a name that does not exist. The error suggests the nearest one; `label` introduces the known names."""
    known = list(known_names)
    if name not in known:
        raise UnknownNameError(field, problem, suggest_or_list(name, known, label, synonyms), name=name)


def require_name(value: str, field: str) -> None:
    """Refuse an empty name."""
    is_name = isinstance(value, str) and bool(value.strip())
    require(is_name, field, f"{value!r} is not a name", "Give a name as a text")
