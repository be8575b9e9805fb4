"""Durations: one grammar for contracts, pipelines, settings and options.

A duration is a sum of numbers with units, `10s`, `5 m`, `1h30m`, `10 seconds`, `1 hour 30 minutes`, `1.5 hours`, or
ISO 8601 without years and months, `PT1H30M`, `P1D`. The usual abbreviations are units, too: `10 secs`, `5 mins`,
`2 hrs`, `500 millis`. Case and blanks do not matter. The sum is a whole number of milliseconds. A month has no
fixed length, so it is not a unit.
"""

import re
from fractions import Fraction

from penstock.core.errors import DurationError
from penstock.core.names import suggest_name

UNITS_MS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "w": 604_800_000,
    "week": 604_800_000,
}
"""Each unit in milliseconds; a unit of three letters or more may end with an s."""

ABBREVIATIONS = {
    "milli": "ms",
    "msec": "ms",
    "hr": "hour",
    "wk": "week",
}
"""Abbreviations with one meaning. They are accepted, and messages do not list them."""

EXAMPLES = "Write a number and a unit, such as '10s', '1h30m', '10 seconds' or '7 days'"

DURATION_PATTERN = r"^\s*(\d+(\.\d+)?\s*[A-Za-zµ]+\s*)+$|^\s*[Pp][\d.WDTHMSwdthms]+\s*$"
"""What every duration matches, for schemas; it does not know the units."""

_PART = re.compile(r"\s*(?P<number>\d{1,18}(?:\.\d{1,18})?)\s*(?P<unit>[a-zµ]+)\s*")
_NUMBER = r"[\d.]{1,36}"
_ISO_8601 = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?"
    rf"(?:T(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?"
)


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as `1h30m`; raise DurationError for any other text."""
    stripped = text.strip()
    total_ms = _parse_iso_8601(stripped) if stripped[:1] in ("P", "p") else _parse_parts(stripped, text)
    if total_ms is None:
        raise DurationError(f"{text!r:.80} is not a duration", EXAMPLES)
    if total_ms.denominator != 1:
        raise DurationError(f"{text!r:.80} is not a whole number of milliseconds", EXAMPLES)
    return int(total_ms)


def is_duration(text: str) -> bool:
    """Return whether a text is a duration."""
    try:
        parse_duration_ms(text)
    except DurationError:
        return False
    return True


def _parse_parts(stripped: str, text: str) -> Fraction | None:
    lower_case = stripped.lower()
    total_ms, position = Fraction(0), 0
    while position < len(lower_case):
        part = _PART.match(lower_case, position)
        if part is None:
            return None
        total_ms += Fraction(part["number"]) * _unit_ms(part["unit"], text)
        position = part.end()
    return total_ms if lower_case else None


def _parse_iso_8601(stripped: str) -> Fraction | None:
    parts = _ISO_8601.fullmatch(stripped.upper())
    if parts is None or not any(parts.groupdict().values()) or stripped.upper().endswith("T"):
        return None
    try:
        lengths = (Fraction(number) * UNITS_MS[unit] for unit, number in parts.groupdict("0").items())
        return sum(lengths, Fraction(0))
    except ValueError:  # a number with two points
        return None


def _unit_ms(unit: str, text: str) -> int:
    singular = unit.removesuffix("s") if len(unit) > 2 else unit
    singular = ABBREVIATIONS.get(singular, singular)
    if singular in UNITS_MS:
        return UNITS_MS[singular]
    if singular in ("month", "year"):
        raise DurationError(f"{text!r:.80}: a {singular} has no fixed length", "Write days, as in '30 days'")
    plurals = (f"{name}s" for name in UNITS_MS if len(name) > 2)
    suggestion = suggest_name(unit, [*UNITS_MS, *plurals]).lstrip()
    raise DurationError(f"{text!r:.80} has an unknown unit {unit!r}", f"{suggestion} {EXAMPLES}".lstrip())
