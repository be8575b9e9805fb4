"""Durations in pipeline definitions: text such as `10 seconds` or `1h30m`, a timedelta, or milliseconds."""

from datetime import timedelta
from typing import TypeAlias

from penstock.core.duration import EXAMPLES, parse_duration_ms
from penstock.core.errors import DurationError
from penstock.engine.errors import DefinitionError

Duration: TypeAlias = str | int | timedelta


def to_milliseconds(duration: Duration, field: str) -> int:
    """Return the duration in milliseconds. An integer is a number of milliseconds.

    A month has no fixed length and is refused. Use `calendar("month")` for windows of months.
    """
    match duration:
        case bool():
            raise DefinitionError(field, repr(duration), EXAMPLES)
        case int():
            return _require_non_negative(duration, field)
        case timedelta():
            return _require_non_negative(duration // timedelta(milliseconds=1), field)
        case str():
            return _parse_text(duration, field)
    raise DefinitionError(field, repr(duration), EXAMPLES)


def _parse_text(text: str, field: str) -> int:
    try:
        return parse_duration_ms(text)
    except DurationError as error:
        raise DefinitionError(field, error.problem, error.fix) from None


def _require_non_negative(duration_ms: int, field: str) -> int:
    if duration_ms < 0:
        raise DefinitionError(field, f"{duration_ms} ms", "Give a duration of 0 or more")
    return duration_ms
