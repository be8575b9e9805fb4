"""Validates the fields of a case. An error names the path of the field and the allowed values."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.core.names import find_nearest_name
from penstock.engine.errors import TranscriptError, UnsupportedCaseError

COMMENT_KEYS = frozenset({"raw", "note", "notes", "comment", "id", "source", "confidence", "raw_timestamp"})
"""Fields that are only for people, at any level."""


UNNAMED_CASE = "without id"


def case_name(node: Mapping[str, Any]) -> str:
    """Return the name of a case."""
    return str(next((node[name] for name in ("id", "name") if node.get(name) is not None), UNNAMED_CASE))


def invalid_field_error(path: str, value: object, fix: str) -> TranscriptError:
    """Return the error about an invalid field."""
    return TranscriptError(f"{path} is {value!r}; write {fix}")


@contextmanager
def prefix_errors(path: str) -> Iterator[None]:
    """Prefix the path of errors that are raised inside of the block."""
    try:
        yield
    except UnsupportedCaseError:
        raise
    except TranscriptError as problem:
        raise TranscriptError(f"{path}: {problem}") from problem


def require_object(value: Any, path: str, fix: str) -> Mapping[str, Any]:
    """Return an object; refuse any other value."""
    if not isinstance(value, Mapping):
        raise invalid_field_error(path, value, fix)
    return value


def require_objects(value: Any, path: str, fix: str) -> list[Mapping[str, Any]]:
    """Return a list of objects; refuse any other value."""
    if not isinstance(value, list):
        raise invalid_field_error(path, value, fix)
    return [require_object(item, f"{path}[{number}]", "an object") for number, item in enumerate(value)]


def refuse_misspelled_fields(node: Mapping[str, Any], known_fields: Collection[str], path: str) -> None:
    """Refuse an unknown field that is similar to a missing known field; it would have no effect."""
    absent = [word for word in known_fields if word not in node]
    for name in node.keys() - {*known_fields, *COMMENT_KEYS}:
        if nearest := find_nearest_name(str(name), absent):
            raise TranscriptError(f"{path} has an unknown field {name!r}. Did you mean {nearest!r}?")


def is_flag(value: Any) -> bool:
    """Tell whether it is a boolean."""
    return isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Tell whether it is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Tell whether it is a number other than NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def is_scalar(value: Any) -> bool:
    """Tell whether it is a single value, as in a field of a record."""
    return value is None or isinstance(value, str | int | float | bool)


def parse_flag(node: Mapping[str, Any], name: str, path: str) -> bool:
    """Return a boolean field; false if it is missing."""
    value = node.get(name, False)
    if not is_flag(value):
        raise invalid_field_error(f"{path}`{name}`", value, "true or false")
    return bool(value)


def matches_one_of(*choices: str) -> Callable[[Any], bool]:
    """Return a test for one of these keywords, in any case."""
    return lambda value: isinstance(value, str) and value.lower() in choices


def describe_python_error(problem: Exception) -> str:
    """Describe a Python error without the terms of our code."""
    match problem:
        case KeyError(args=(str(name),)):
            return f"{name!r} is missing"
        case _:
            return "one of its parts has the wrong type"
