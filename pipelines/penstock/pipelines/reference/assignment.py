"""Where: the windows that an instant lies in. Sessions are found in `sessions`, order windows in `order`."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from penstock.pipelines.plan.windows import Calendar, CalendarUnit, Fixed, Global, Sliding
from penstock.pipelines.reference.records import BEGINNING, END, Instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
DAY = 86_400_000
CYCLE = 146_097 * DAY
"""400 years, after which dates and days of the week repeat."""
EARLIEST = -1_500 * 365 * DAY
LATEST = 7_000 * 365 * DAY


def windows_of(window: Fixed | Sliding | Calendar | Global, time: int) -> list[tuple[Instant, Instant]]:
    """Return all windows [start, end) with start <= time < end, from the earliest."""
    match window:
        case Fixed(size, offset):
            start = time - (time - offset) % size
            return [(start, start + size)]
        case Sliding(size, period, offset):
            last = time - (time - offset) % period
            starts = range(last, time - size, -period)
            return sorted((start, start + size) for start in starts)
        case Calendar(unit, zone):
            return [calendar_window(unit, ZoneInfo(zone), time)]
        case Global():
            return [(BEGINNING, END)]


def calendar_window(unit: CalendarUnit, zone: ZoneInfo, time: int) -> tuple[Instant, Instant]:
    """Return the day, week or month of a place: from one local midnight to another, however long that takes."""
    shift = cycles_to_reach(time) * CYCLE
    local = (EPOCH + (time + shift) * MILLISECOND).astimezone(zone)
    first, after = midnights(unit, local)
    return instant(first) - shift, instant(after) - shift


def midnights(unit: CalendarUnit, local: datetime) -> tuple[datetime, datetime]:
    """Return the local midnights at which the unit begins and ends."""
    today = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    match unit:
        case "day":
            return today, today + timedelta(days=1)
        case "week":
            monday = today - timedelta(days=local.weekday())
            return monday, monday + timedelta(days=7)
        case "month":
            first = today.replace(day=1)
            return first, (first + timedelta(days=32)).replace(day=1)


def instant(local: datetime) -> int:
    """Return the milliseconds of a local time; of a midnight that the clocks skip, when they skipped it."""
    return (local.astimezone(UTC) - EPOCH) // MILLISECOND


def cycles_to_reach(time: int) -> int:
    """Return how many cycles bring an instant into the years that Python's calendar knows."""
    if time < EARLIEST:
        return -((time - EARLIEST) // CYCLE)
    if time > LATEST:
        return -((time - LATEST) // CYCLE + 1)
    return 0
