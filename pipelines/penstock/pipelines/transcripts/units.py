"""Times in a case: numbers in the case's unit, or in milliseconds where the field's name says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from penstock.pipelines.errors import TranscriptError

UNITS = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
NAMES = {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}


@dataclass(frozen=True)
class Unit:
    """How many milliseconds a number in a case means."""

    milliseconds: int

    def of(self, value: Any) -> float:
        """Return a time or a duration in milliseconds; `inf` is the end of time."""
        if value in ("inf", "+inf", "Infinity"):
            return inf
        if value == "-inf":
            return -inf
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TranscriptError(f'{value!r} is no time; write a number, or "inf"')
        if value != value:
            raise TranscriptError(f'{value!r} is no time; write a number, or "inf"')
        exact = value * self.milliseconds
        return exact if exact in (inf, -inf) else round(exact)

    def field(self, node: Mapping[str, Any], *names: str) -> int:
        """Return the first of these fields that is there, under its name or with `_ms` behind it."""
        for name in names:
            if node.get(f"{name}_ms") is not None:
                return whole(UNIT_OF_NAMES.of(node[f"{name}_ms"]), name)
            if node.get(name) is not None:
                return whole(self.of(node[name]), name)
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


def unit_of(text: str | None) -> Unit:
    """Read `s`, `ms` or `s after 12:00:00`; without a word it is milliseconds."""
    word = (text or "ms").split()[0].lower()
    name = NAMES.get(word.removesuffix("s"), word)
    if name not in UNITS:
        raise TranscriptError(f"the unit {text!r} is not known; write one of {', '.join(UNITS)}")
    return Unit(UNITS[name])
