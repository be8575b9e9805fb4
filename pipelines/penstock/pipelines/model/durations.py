"""Durations as people write them: `10 seconds`, `1 hour 30 minutes`, `250 ms`."""

import re
from datetime import timedelta
from typing import TypeAlias

from penstock.pipelines.errors import DefinitionError

Duration: TypeAlias = str | int | timedelta

UNITS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "second": 1_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
PART = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+)\s*")
FIX = "Write a number and a unit, as in '10 seconds' or '1 hour 30 minutes'"


def milliseconds(duration: Duration, field: str) -> int:
    """Return the duration in whole milliseconds; a plain integer already is one.

    A month has no fixed length and is refused; windows of months are `calendar("month")`.
    """
    match duration:
        case bool():
            raise DefinitionError(field, repr(duration), FIX)
        case int():
            return not_negative(duration, field)
        case timedelta():
            return not_negative(duration // timedelta(milliseconds=1), field)
        case str():
            return spelled_out(duration.strip().lower(), field)
    raise DefinitionError(field, repr(duration), FIX)


def not_negative(duration: int, field: str) -> int:
    """Refuse time that runs backwards."""
    if duration < 0:
        raise DefinitionError(field, f"{duration} ms", "Give a duration of 0 or more")
    return duration


def spelled_out(text: str, field: str) -> int:
    """Add up the parts of a text."""
    total, position = 0.0, 0
    while position < len(text):
        part = PART.match(text, position)
        if part is None:
            raise DefinitionError(field, repr(text), FIX)
        total += float(part["number"]) * unit_length(part["unit"], text, field)
        position = part.end()
    if not text or not total.is_integer():
        raise DefinitionError(field, f"{text!r:.80}", FIX + ", in whole milliseconds")
    return int(total)


def unit_length(unit: str, text: str, field: str) -> int:
    """Return the milliseconds in one unit, which may be written in the plural."""
    length = UNITS.get(unit) or UNITS.get(unit.removesuffix("s"))
    if length is None:
        raise DefinitionError(field, repr(text), f"{FIX}; units are {', '.join(UNITS)}")
    return length
