"""Spans of time as people write them: `10 seconds`, `7 days`."""

import re

from penstock.ingestion.errors import ContractError

_UNITS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "second": 1_000,
    "m": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_SPAN = re.compile(r"\s*(\d+)\s*([a-z]+)\s*")


def milliseconds(text: str) -> int:
    """Return the milliseconds in a whole number of one unit, such as `90 seconds`."""
    match = _SPAN.fullmatch(text)
    unit = "" if match is None else _unit(match[2])
    if match is None or unit not in _UNITS:
        raise ContractError(
            f"'{text}' is no span of time; write a whole number and a unit, such as '10 seconds' or '7 days'"
        )
    return int(match[1]) * _UNITS[unit]


def _unit(word: str) -> str:
    return word if word in _UNITS else word.removesuffix("s")
