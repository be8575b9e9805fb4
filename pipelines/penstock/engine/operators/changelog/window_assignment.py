"""Assign windows to elements by event time.

Spark does this for records, in SQL. This module serves downstream stages, whose elements never reach Spark.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.plan.windows import Calendar, Fixed, Global, SameWindows, Sessions, Sliding, Window
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, Int64Array

TIMESTAMP_MS = pa.timestamp("ms")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LISTED_TRANSITIONS_END_MS = 2_100_000_000_000
"""July 2036. Arrow knows time-zone transitions only up to 2037; it does not apply recurring rules after that.
"""

MAX_PYTHON_TIME_MS = 240_000_000_000_000
"""In the year 9575. Later times are looked up one calendar cycle earlier, because Python dates end with 9999.
"""
CALENDAR_CYCLE_MS = 146_097 * 86_400_000
"""400 years, after which dates, weekdays and time-zone rules repeat."""


@dataclass(frozen=True)
class WindowAssignment:
    """One row per element and window: the element's number, and the window's bounds."""

    element: Int64Array
    start: Int64Array
    end: Int64Array


def assign_windows(window: Window, elements: pa.Table) -> WindowAssignment:
    """Return the windows of elements, which have `_time`, and `_start` and `_end` of their pane's window."""
    time, element_numbers = _int_column(elements, "_time"), np.arange(elements.num_rows)
    match window:
        case SameWindows():
            return WindowAssignment(
                element_numbers, _int_column(elements, "_start"), _int_column(elements, "_end")
            )
        case Global():
            return WindowAssignment(
                element_numbers,
                np.full(len(element_numbers), MIN_TIMESTAMP_MS),
                np.full(len(element_numbers), MAX_TIMESTAMP_MS),
            )
        case Fixed(size, offset):
            start = time - (time - offset) % size
            return WindowAssignment(element_numbers, start, start + size)
        case Sessions(gap):
            return WindowAssignment(element_numbers, time, time + gap)
        case Sliding():
            return _assign_sliding(window, time)
        case Calendar():
            return WindowAssignment(element_numbers, *_assign_calendar(window, time))
        case _:
            raise TypeError(f"{window} does not depend on the time of an element alone")


def _assign_sliding(window: Sliding, time: Int64Array) -> WindowAssignment:
    offset_in_period = (time - window.offset) % window.period
    window_counts = np.maximum((window.size - offset_in_period + window.period - 1) // window.period, 0)
    element = np.repeat(np.arange(len(time)), window_counts)
    window_number = np.arange(len(element)) - np.repeat(
        np.cumsum(window_counts) - window_counts, window_counts
    )
    start = (time - offset_in_period)[element] - window_number * window.period
    return WindowAssignment(element, start, start + window.size)


def _assign_calendar(window: Calendar, time: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return local midnights. A midnight that a time-zone transition skips is the time of the transition."""
    distinct_times, inverse = np.unique(time, return_inverse=True)
    listed_count = int(np.searchsorted(distinct_times, LISTED_TRANSITIONS_END_MS))
    start, end = _assign_by_arrow(window, distinct_times[:listed_count])
    late_start, late_end = _assign_by_zoneinfo(window, distinct_times[listed_count:])
    return np.append(start, late_start)[inverse], np.append(end, late_end)[inverse]


def _assign_by_arrow(window: Calendar, time: Int64Array) -> tuple[Int64Array, Int64Array]:
    instants = pa.array(time).cast(pa.timestamp("ms", tz=window.zone))
    local_start = pc.floor_temporal(pc.local_timestamp(instants), unit=window.unit)
    days = {"day": 1, "week": 7, "month": 32}[window.unit]
    local_end = pc.floor_temporal(
        pc.add(local_start, pa.scalar(days * 86_400_000, pa.duration("ms"))), unit=window.unit
    )
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
    local_end = local_start + timedelta(days={"day": 1, "week": 7, "month": 32}[window.unit])
    local_end = local_end.replace(day=1) if window.unit == "month" else local_end
    start_ms, end_ms = (
        (midnight.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
        for midnight in (local_start, local_end)
    )
    return start_ms + shift, end_ms + shift


def _int_column(elements: pa.Table, name: str) -> Int64Array:
    return np.asarray(elements.column(name), np.int64)
