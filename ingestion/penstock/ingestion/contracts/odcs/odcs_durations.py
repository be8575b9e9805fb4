"""Durations as value and unit of a service level, and as text of a contract."""

from typing import Any

from penstock.core.duration import parse_duration_ms
from penstock.core.errors import DurationError

FOREVER = "forever"
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_DAYS_PER_YEAR = 365
_YEAR_UNITS = ("y", "yr", "year", "years")


def split_duration(duration_ms: int) -> dict[str, Any]:
    """Return value and unit in the largest unit without a fraction; a negative retention is forever.

    >>> split_duration(7_200_000)
    {'value': 2, 'unit': 'hours'}
    """
    if duration_ms < 0:
        return {"value": FOREVER}
    for unit, unit_ms in _UNITS_MS.items():
        if duration_ms and duration_ms % unit_ms == 0:
            return {"value": duration_ms // unit_ms, "unit": unit}
    return {"value": duration_ms, "unit": "milliseconds"}


def join_duration(service_level: dict[str, Any]) -> str:
    """Return the text of a contract for value and unit, such as `7 days`."""
    return f"{service_level.get('value')} {service_level.get('unit', '')}".strip()


def normalize_duration(service_level: dict[str, Any]) -> dict[str, Any]:
    """Return a service level with a unit as `split_duration` writes it; a year has 365 days."""
    value, unit = service_level.get("value"), str(service_level.get("unit", "")).lower()
    if unit in _YEAR_UNITS and isinstance(value, int):
        value, unit = value * _DAYS_PER_YEAR, "days"
    try:
        duration_ms = parse_duration_ms(f"{value} {unit}")
    except DurationError:
        return service_level
    return {**service_level, **split_duration(duration_ms)}
