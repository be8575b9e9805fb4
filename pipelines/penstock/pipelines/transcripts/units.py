"""Times in a case: numbers in the case's unit, or in milliseconds where the field's name says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.transcripts.form import is_number, said_of, wrong

UNITS = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
ENDS = {"inf": inf, "+inf": inf, "Infinity": inf, "-inf": -inf}
"""The words for the ends of time."""
NAMES = {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}

FURTHEST = 2**63
"""No time lies further from 1970: 64 bits hold no more milliseconds."""


@dataclass(frozen=True)
class Unit:
    """How many milliseconds a number in a case means."""

    milliseconds: int

    def of(self, value: Any) -> float:
        """Return a time or a duration in milliseconds; `inf` is the end of time."""
        if isinstance(value, str) and value in ENDS:
            return ENDS[value]
        if not is_number(value):
            raise TranscriptError(f'{value!r} is no time; write a number, or "inf"')
        exact: float = value * self.milliseconds
        return exact if exact in (inf, -inf) else round(exact)

    def instant(self, value: Any, place: str) -> float:
        """Return a time that 64 bits hold, or an end of time."""
        found = self.at(value, place)
        if FURTHEST <= abs(found) < inf:
            raise wrong(place, value, "a time of 64 bits of milliseconds")
        return found

    def at(self, value: Any, place: str) -> float:
        """Return a time or a duration, or name the place where there is none."""
        with said_of(place):
            return self.of(value)

    def field(self, node: Mapping[str, Any], *names: str) -> int:
        """Return the first of these fields that is there, under its name or with `_ms` behind it."""
        for name in names:
            if node.get(f"{name}_ms") is not None:
                return whole(UNIT_OF_NAMES.at(node[f"{name}_ms"], f"`{name}_ms`"), name)
            if node.get(name) is not None:
                return whole(self.at(node[name], f"`{name}`"), name)
        raise TranscriptError(f"{node.get('type')!r} needs {' or '.join(names)}; found {dict(node)}")

    def optional(self, node: Mapping[str, Any], *names: str) -> int:
        """Return such a field, or 0 where there is none."""
        there = any(node.get(f"{name}_ms", node.get(name)) is not None for name in names)
        return self.field(node, *names) if there else 0


UNIT_OF_NAMES = Unit(1)
"""The unit of fields that say so in their names."""


def whole(found: float, name: str) -> int:
    """Refuse a duration without an end."""
    if found in (inf, -inf):
        raise TranscriptError(f"`{name}` is endless; write a number")
    return int(found)


def unit_of(text: Any) -> Unit:
    """Read `s`, `ms` or `s after 12:00:00`; without a word it is milliseconds."""
    words = (text or "ms").split() if isinstance(text, str | None) else []
    word = words[0].lower() if words else ""
    name = NAMES.get(word.removesuffix("s"), word)
    if name not in UNITS:
        raise TranscriptError(f"the unit {text!r} is not known; write one of {', '.join(UNITS)}")
    return Unit(UNITS[name])
