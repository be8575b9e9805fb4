"""Assigns windows by event time. `session_merging` has sessions, `order_windows` has order windows."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from penstock.conformance.reference.input_records import MAX_TIMESTAMP, MIN_TIMESTAMP, Instant
from penstock.engine.plan.windows import Calendar, CalendarUnit, Fixed, Global, Sliding

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
DAY_MS = 86_400_000
CALENDAR_CYCLE_MS = 146_097 * DAY_MS
"""400 years, after which dates and days of the week repeat."""
MIN_CALENDAR_MS = -1_500 * 365 * DAY_MS
MAX_CALENDAR_MS = 7_000 * 365 * DAY_MS


def find_containing_windows(
    window: Fixed | Sliding | Calendar | Global, time: int
) -> list[tuple[Instant, Instant]]:
    """Return all windows [start, end) with start <= time < end, earliest first."""
    match window:
        case Fixed(size, offset):
            start = time - (time - offset) % size
            return [(start, start + size)]
        case Sliding(size, period, offset):
            last_start = time - (time - offset) % period
            starts = range(last_start, time - size, -period)
            return sorted((start, start + size) for start in starts)
        case Calendar(unit, zone):
            return [find_calendar_window(unit, ZoneInfo(zone), time)]
        case Global():
            return [(MIN_TIMESTAMP, MAX_TIMESTAMP)]


def find_calendar_window(unit: CalendarUnit, zone: ZoneInfo, time: int) -> tuple[Instant, Instant]:
    """Return the local day, week or month: from one local midnight to another, whatever its length."""
    shift_ms = count_calendar_cycles(time) * CALENDAR_CYCLE_MS
    local_time = (EPOCH + (time + shift_ms) * MILLISECOND).astimezone(zone)
    start, end = find_midnights(unit, local_time)
    return to_epoch_ms(start) - shift_ms, to_epoch_ms(end) - shift_ms


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
