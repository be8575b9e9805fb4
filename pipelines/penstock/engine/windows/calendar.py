"""Calendar windows: days, weeks and months of a time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.definition.argument_checks import require, require_one_of
from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.time_window import TimeWindow, WindowAssignment

CalendarUnit: TypeAlias = Literal["day", "week", "month"]

NON_PORTABLE_ZONES = frozenset({"localtime", "posixrules", "Factory", "ROC"})
"""Time zone names that Java may not know. The first two differ between machines."""

TIMESTAMP_MS = pa.timestamp("ms")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
MAX_DAYS = {"day": 1, "week": 7, "month": 31}
DAYS_INTO_NEXT = {"day": 1, "week": 7, "month": 32}
"""Days after which a time is in the next unit."""
INTERVALS_SQL = {"day": "INTERVAL 1 DAY", "week": "INTERVAL 7 DAY", "month": "INTERVAL 1 MONTH"}

LISTED_TRANSITIONS_END_MS = 2_100_000_000_000
"""July 2036. Arrow knows time-zone transitions only up to 2037; it does not apply recurring rules after that."""

MAX_PYTHON_TIME_MS = 240_000_000_000_000
"""In the year 9575. Later times are looked up one calendar cycle earlier, because Python dates end with 9999."""
CALENDAR_CYCLE_MS = 146_097 * DAY_MS
"""400 years, after which dates, weekdays and time-zone rules repeat."""


@dataclass(frozen=True)
class Calendar(TimeWindow):
    """Days, weeks (from Monday) or months in a time zone. A day may have 23 or 25 hours."""

    unit: CalendarUnit
    zone: str = "UTC"

    def __post_init__(self) -> None:
        require_one_of(self.unit, get_args(CalendarUnit), "window.calendar.unit")
        require(
            is_known_zone(self.zone), "window.calendar.zone", self.zone, "Name a zone as in Europe/Berlin"
        )

    def describe(self) -> str:
        """Describe unit and time zone."""
        return f"calendar {self.unit}s in {self.zone}"

    @property
    def max_reach_ms(self) -> int:
        """A window may be an hour longer than its days."""
        return MAX_DAYS[self.unit] * DAY_MS + HOUR_MS

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return local midnights."""
        local = f"from_utc_timestamp(timestamp_millis({time_sql}), '{self.zone}')"
        local_start = f"date_trunc('{self.unit}', {local})"
        return self._utc_millis_sql(local_start), self._utc_millis_sql(
            f"({local_start} + {INTERVALS_SQL[self.unit]})"
        )

    def _utc_millis_sql(self, local_time_sql: str) -> str:
        return f"unix_millis(to_utc_timestamp({local_time_sql}, '{self.zone}'))"

    def assign(self, times: Int64Array) -> WindowAssignment:
        """Return local midnights. A midnight that a time-zone transition skips is the time of the transition."""
        distinct_times, inverse = np.unique(times, return_inverse=True)
        listed_count = int(np.searchsorted(distinct_times, LISTED_TRANSITIONS_END_MS))
        start, end = _assign_by_arrow(self, distinct_times[:listed_count])
        late_start, late_end = _assign_by_zoneinfo(self, distinct_times[listed_count:])
        return WindowAssignment.of_single_windows(
            np.append(start, late_start)[inverse], np.append(end, late_end)[inverse]
        )


@keyword("calendar", synonyms=("day", "days", "daily", "week", "weekly", "month", "monthly"))
def calendar(unit: CalendarUnit, zone: str = "UTC") -> Calendar:
    """Assign records to days, weeks (from Monday) or months of a time zone.

    Args:
        unit: `day`, `week` or `month`.
        zone: the name of a time zone, such as `Europe/Berlin`. Days of its clock changes have 23 or 25 hours.

    Example:
        window(calendar("month", "Europe/Berlin"))
    """
    return Calendar(unit, zone)


def is_known_zone(name: str) -> bool:
    """Return whether the time zone exists, with the same meaning in Python and in Spark."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        return False
    return name not in NON_PORTABLE_ZONES and not name.startswith(("posix/", "right/"))


def _assign_by_arrow(window: Calendar, time: Int64Array) -> tuple[Int64Array, Int64Array]:
    instants = pa.array(time).cast(pa.timestamp("ms", tz=window.zone))
    local_start = pc.floor_temporal(pc.local_timestamp(instants), unit=window.unit)
    next_time = pc.add(local_start, pa.scalar(DAYS_INTO_NEXT[window.unit] * DAY_MS, pa.duration("ms")))
    local_end = pc.floor_temporal(next_time, unit=window.unit)
    start, end = (
        np.asarray(
            pc.assume_timezone(
                local.cast(TIMESTAMP_MS), window.zone, ambiguous="earliest", nonexistent="latest"
            ).cast(pa.int64())
        )
        for local in (local_start, local_end)
    )
    return start, end


def _assign_by_zoneinfo(window: Calendar, time: Int64Array) -> tuple[Int64Array, Int64Array]:
    zone = ZoneInfo(window.zone)
    bounds = [_find_midnights(window, zone, instant) for instant in time.tolist()]
    start, end = np.array(bounds, np.int64).reshape(-1, 2).T
    return start, end


def _find_midnights(window: Calendar, zone: ZoneInfo, time: int) -> tuple[int, int]:
    shift = CALENDAR_CYCLE_MS if time > MAX_PYTHON_TIME_MS else 0
    local = (EPOCH + timedelta(milliseconds=time - shift)).astimezone(zone)
    local_start = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    days_back = {"day": 0, "week": local.weekday(), "month": local.day - 1}[window.unit]
    local_start -= timedelta(days=days_back)
    local_end = local_start + timedelta(days=DAYS_INTO_NEXT[window.unit])
    local_end = local_end.replace(day=1) if window.unit == "month" else local_end
    start_ms, end_ms = (
        (midnight.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
        for midnight in (local_start, local_end)
    )
    return start_ms + shift, end_ms + shift
