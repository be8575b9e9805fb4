"""Assigns windows by time. `session_merging` merges sessions, `order_windows` has order windows."""

from datetime import UTC, datetime, timedelta
from functools import singledispatch
from zoneinfo import ZoneInfo

from penstock.conformance.reference.input_records import MAX_TIMESTAMP, MIN_TIMESTAMP, Instant
from penstock.engine.windows.calendar import Calendar, CalendarUnit
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.window import Window

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
DAY_MS = 86_400_000
CALENDAR_CYCLE_MS = 146_097 * DAY_MS
"""400 years, after which dates and days of the week repeat."""
MIN_CALENDAR_MS = -1_500 * 365 * DAY_MS
MAX_CALENDAR_MS = 7_000 * 365 * DAY_MS


@singledispatch
def find_containing_windows(window: Window, time: int) -> list[tuple[Instant, Instant]]:
    """Return all windows [start, end) with start <= time < end, earliest first.

    The module of a kind from elsewhere registers its implementation: `@find_containing_windows.register`.
    """
    raise TypeError(f"{window} has no reference implementation. Register one with find_containing_windows")


@find_containing_windows.register
def find_fixed_window(window: Fixed, time: int) -> list[tuple[Instant, Instant]]:
    """Return the fixed window of a time."""
    start = time - (time - window.offset) % window.size
    return [(start, start + window.size)]


@find_containing_windows.register
def find_sliding_windows(window: Sliding, time: int) -> list[tuple[Instant, Instant]]:
    """Return each window that starts at most its size before a time."""
    last_start = time - (time - window.offset) % window.period
    starts = range(last_start, time - window.size, -window.period)
    return sorted((start, start + window.size) for start in starts)


@find_containing_windows.register
def find_session(window: Sessions, time: int) -> list[tuple[Instant, Instant]]:
    """Return the session that an element opens, before it is merged."""
    return [(time, time + window.gap)]


@find_containing_windows.register
def find_global_window(window: Global, time: int) -> list[tuple[Instant, Instant]]:
    """Return the one window."""
    return [(MIN_TIMESTAMP, MAX_TIMESTAMP)]


@find_containing_windows.register
def find_calendar_window(window: Calendar, time: int) -> list[tuple[Instant, Instant]]:
    """Return the local day, week or month: from one local midnight to another, whatever its length."""
    shift_ms = count_calendar_cycles(time) * CALENDAR_CYCLE_MS
    local_time = (EPOCH + (time + shift_ms) * MILLISECOND).astimezone(ZoneInfo(window.zone))
    start, end = find_midnights(window.unit, local_time)
    return [(to_epoch_ms(start) - shift_ms, to_epoch_ms(end) - shift_ms)]


def find_midnights(unit: CalendarUnit, local_time: datetime) -> tuple[datetime, datetime]:
    """Return the local midnights at which the unit starts and ends."""
    today = local_time.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match unit:
        case "day":
            return today, today + timedelta(days=1)
        case "week":
            monday = today - timedelta(days=local_time.weekday())
            return monday, monday + timedelta(days=7)
        case "month":
            first = today.replace(day=1)
            return first, (first + timedelta(days=32)).replace(day=1)


def to_epoch_ms(local_time: datetime) -> int:
    """Return a local time in milliseconds; a midnight that does not exist becomes the time of the clock change."""
    return (local_time.astimezone(UTC) - EPOCH) // MILLISECOND


def count_calendar_cycles(time: int) -> int:
    """Return how many cycles move a time into the years that Python's calendar supports."""
    if time < MIN_CALENDAR_MS:
        return -((time - MIN_CALENDAR_MS) // CALENDAR_CYCLE_MS)
    if time > MAX_CALENDAR_MS:
        return -((time - MAX_CALENDAR_MS) // CALENDAR_CYCLE_MS + 1)
    return 0
