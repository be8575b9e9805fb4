"""The windows of elements whose time is known: which of them each lies in.

Spark does the same for records, in SQL; this is for the elements of later stages, which never are in Spark.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.plan.windows import Calendar, Fixed, Global, SameWindows, Sessions, Sliding, Window
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER, Ints

MILLISECONDS = pa.timestamp("ms")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LISTED = 2_100_000_000_000
"""July 2036. Arrow knows the changes of clocks that are listed, up to 2037, and no rule that holds after it."""

LAST = 240_000_000_000_000
"""In the year 9575: what lies later is looked up a cycle of the calendar earlier, as Python ends with 9999."""
CYCLE = 146_097 * 86_400_000
"""400 years, after which dates, days of the week and rules come again."""


@dataclass(frozen=True)
class Placed:
    """A row for each element in each of its windows: the element's number, and the window's bounds."""

    element: Ints
    start: Ints
    end: Ints


def placed(window: Window, elements: pa.Table) -> Placed:
    """The windows of elements that have `_time`, and `_start` and `_end` of the window which they come from."""
    time, own = _ints(elements, "_time"), np.arange(elements.num_rows)
    match window:
        case SameWindows():
            return Placed(own, _ints(elements, "_start"), _ints(elements, "_end"))
        case Global():
            return Placed(own, np.full(len(own), BEFORE_ALL), np.full(len(own), NEVER))
        case Fixed(size, offset):
            start = time - (time - offset) % size
            return Placed(own, start, start + size)
        case Sessions(gap):
            return Placed(own, time, time + gap)
        case Sliding():
            return _sliding(window, time)
        case Calendar():
            return Placed(own, *_calendar(window, time))
        case _:
            raise TypeError(f"{window} is not decided by the time of an element")


def _sliding(window: Sliding, time: Ints) -> Placed:
    into = (time - window.offset) % window.period
    many = np.maximum((window.size - into + window.period - 1) // window.period, 0)
    element = np.repeat(np.arange(len(time)), many)
    nth = np.arange(len(element)) - np.repeat(np.cumsum(many) - many, many)
    start = (time - into)[element] - nth * window.period
    return Placed(element, start, start + window.size)


def _calendar(window: Calendar, time: Ints) -> tuple[Ints, Ints]:
    """Local midnights; one that the clocks skip is when they skipped it."""
    distinct, back = np.unique(time, return_inverse=True)
    listed = int(np.searchsorted(distinct, LISTED))
    start, end = _by_list(window, distinct[:listed])
    late_start, late_end = _by_rule(window, distinct[listed:])
    return np.append(start, late_start)[back], np.append(end, late_end)[back]


def _by_list(window: Calendar, time: Ints) -> tuple[Ints, Ints]:
    instants = pa.array(time).cast(pa.timestamp("ms", tz=window.zone))
    begin = pc.floor_temporal(pc.local_timestamp(instants), unit=window.unit)
    days = {"day": 1, "week": 7, "month": 32}[window.unit]
    after = pc.floor_temporal(
        pc.add(begin, pa.scalar(days * 86_400_000, pa.duration("ms"))), unit=window.unit
    )
    start, end = (
        np.asarray(
            pc.assume_timezone(
                local.cast(MILLISECONDS), window.zone, ambiguous="earliest", nonexistent="latest"
            ).cast(pa.int64())
        )
        for local in (begin, after)
    )
    return start, end


def _by_rule(window: Calendar, time: Ints) -> tuple[Ints, Ints]:
    zone = ZoneInfo(window.zone)
    found = [_midnights(window, zone, instant) for instant in time.tolist()]
    start, end = np.array(found, np.int64).reshape(-1, 2).T
    return start, end


def _midnights(window: Calendar, zone: ZoneInfo, time: int) -> tuple[int, int]:
    shift = CYCLE if time > LAST else 0
    local = (EPOCH + timedelta(milliseconds=time - shift)).astimezone(zone)
    begin = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    back = {"day": 0, "week": local.weekday(), "month": local.day - 1}[window.unit]
    begin -= timedelta(days=back)
    after = begin + timedelta(days={"day": 1, "week": 7, "month": 32}[window.unit])
    after = after.replace(day=1) if window.unit == "month" else after
    first, last = ((each.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1) for each in (begin, after))
    return first + shift, last + shift


def _ints(elements: pa.Table, name: str) -> Ints:
    return np.asarray(elements.column(name), np.int64)
