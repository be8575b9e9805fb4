"""Times in a case: numbers in the case's unit, or in milliseconds in `_ms` fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from penstock.conformance.field_validation import invalid_field_error, is_number, prefix_errors
from penstock.engine.errors import TranscriptError

MS_BY_UNIT = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
INFINITE_TIMES = {"inf": inf, "+inf": inf, "Infinity": inf, "-inf": -inf}
"""The keywords for infinity."""
UNIT_ALIASES = {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}

MAX_TIME_MS = 2**63
"""The maximum distance from 1970 in milliseconds that fits 64 bits."""


@dataclass(frozen=True)
class TimeUnit:
    """The number of milliseconds per unit."""

    milliseconds: int

    def to_milliseconds(self, value: Any) -> float:
        """Return a time or a duration in milliseconds; `inf` is infinite."""
        if isinstance(value, str) and value in INFINITE_TIMES:
            return INFINITE_TIMES[value]
        if not is_number(value):
            raise TranscriptError(f'{value!r} is not a time; write a number or "inf"')
        scaled: float = value * self.milliseconds
        return scaled if scaled in (inf, -inf) else round(scaled)

    def parse_instant(self, value: Any, path: str) -> float:
        """Return a time that fits 64 bits, or an infinite one."""
        time_ms = self.parse_time(value, path)
        if MAX_TIME_MS <= abs(time_ms) < inf:
            raise invalid_field_error(path, value, "a time of at most 64 bits of milliseconds")
        return time_ms

    def parse_time(self, value: Any, path: str) -> float:
        """Return a time or a duration; raise an error with the path if it is invalid."""
        with prefix_errors(path):
            return self.to_milliseconds(value)

    def parse_field(self, node: Mapping[str, Any], *names: str) -> int:
        """Return the first of these fields that exists, under its name or with `_ms` appended."""
        for name in names:
            if node.get(f"{name}_ms") is not None:
                return require_finite(MILLISECOND_UNIT.parse_time(node[f"{name}_ms"], f"`{name}_ms`"), name)
            if node.get(name) is not None:
                return require_finite(self.parse_time(node[name], f"`{name}`"), name)
        raise TranscriptError(f"{node.get('type')!r} needs {' or '.join(names)}; found {dict(node)}")

    def parse_optional_field(self, node: Mapping[str, Any], *names: str) -> int:
        """Return such a field, or 0 if there is none."""
        is_present = any(node.get(f"{name}_ms", node.get(name)) is not None for name in names)
        return self.parse_field(node, *names) if is_present else 0


MILLISECOND_UNIT = TimeUnit(1)
"""The unit of fields that end in `_ms`."""


def require_finite(duration_ms: float, name: str) -> int:
    """Refuse an infinite duration."""
    if duration_ms in (inf, -inf):
        raise TranscriptError(f"`{name}` is infinite; write a number")
    return int(duration_ms)


def parse_unit(text: Any) -> TimeUnit:
    """Parse `s`, `ms` or `s after 12:00:00`; the default is milliseconds."""
    words = (text or "ms").split() if isinstance(text, str | None) else []
    unit_text = words[0].lower() if words else ""
    name = UNIT_ALIASES.get(unit_text.removesuffix("s"), unit_text)
    if name not in MS_BY_UNIT:
        raise TranscriptError(f"unknown unit {text!r}; write one of {', '.join(MS_BY_UNIT)}")
    return TimeUnit(MS_BY_UNIT[name])
