"""Sliding windows, which overlap if they are longer than their period."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.definition.argument_checks import (
    require,
    require_non_negative,
    require_one_of,
    require_positive,
)
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration, format_offset
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.time_window import (
    TIME_DOMAINS,
    TimeDomain,
    TimeWindow,
    WindowAssignment,
    describe_time_domain,
)

MAX_WINDOWS_PER_RECORD = 100_000
"""The most windows of one record. A record is aggregated into each of its windows."""


@dataclass(frozen=True)
class Sliding(TimeWindow):
    """Windows of one size that start every period. A record is in each window that covers its time.

    A period above the size leaves gaps. A record in a gap is in no window and counts as late with reason
    `no_window`.
    """

    size: int
    period: int
    offset: int = 0
    time: TimeDomain = "event"

    def __post_init__(self) -> None:
        require_positive(self.size, "window.sliding.size")
        require_positive(self.period, "window.sliding.period")
        require_non_negative(self.offset, "window.sliding.offset")
        require(self.offset < self.period, "window.sliding.offset", self.offset, "Give less than the period")
        require_one_of(self.time, TIME_DOMAINS, "window.sliding.time")
        problem = f"a record would lie in {-(-self.size // self.period)} windows"
        fix = f"Give a longer period or a shorter size: {MAX_WINDOWS_PER_RECORD} windows at most"
        require(self.size <= MAX_WINDOWS_PER_RECORD * self.period, "window.sliding.period", problem, fix)

    def describe(self) -> str:
        """Describe size, period, offset and clock."""
        shift = f"{format_offset(self.offset)}{describe_time_domain(self.time)}"
        return (
            f"sliding windows of {format_duration(self.size)} "
            f"that start every {format_duration(self.period)}{shift}"
        )

    @property
    def uses_processing_time(self) -> bool:
        """Whether the batch clock assigns records."""
        return self.time == "processing"

    @property
    def clock_boundaries(self) -> tuple[tuple[int, int], ...]:
        """The clocks at which windows start, and those at which they end."""
        boundaries = ((self.period, self.offset), (self.period, self.offset + self.size))
        return boundaries if self.uses_processing_time else ()

    @property
    def max_reach_ms(self) -> int:
        """A window ends at most its size after an element."""
        return self.size

    @property
    def file_span_ms(self) -> int:
        """A file for each window."""
        return self.period

    @property
    def drawn_interval(self) -> int:
        """A diagram draws windows that follow one another."""
        return max(self.size // self.period, 1)

    def is_drawn(self, start: float) -> bool:
        """Return whether the window is one of those that follow one another."""
        return (start - self.offset) % self.size == 0

    def starts_sql(self, time_sql: str) -> str:
        """Return the starts by the remainder of the time; none if the time is in a gap."""
        into_period = f"pmod({time_sql} - {self.offset}, {self.period})"
        newest = f"({time_sql} - {into_period})"
        # A period above the size leaves gaps: then the newest window may end before the record.
        oldest = f"({newest} - {self.period} * (({into_period} * -1 + {self.size} - 1) div {self.period}))"
        starts = f"sequence({oldest}, {newest}, {self.period}L)"
        return f"CASE WHEN {into_period} < {self.size} THEN {starts} ELSE array() END"

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return the bounds of the window that starts at this time."""
        return time_sql, f"({time_sql} + {self.size})"

    def assign(self, times: Int64Array) -> WindowAssignment:
        """Return the windows of each time, newest first."""
        window_counts = self.count_windows(times)
        element = np.repeat(np.arange(len(times)), window_counts)
        window_number = np.arange(len(element)) - np.repeat(
            np.cumsum(window_counts) - window_counts, window_counts
        )
        newest_start = times - (times - self.offset) % self.period
        start = newest_start[element] - window_number * self.period
        return WindowAssignment(element, start, start + self.size)

    def count_windows(self, times: Int64Array) -> Int64Array:
        """Return the number of windows that contain each of these times; 0 in a gap."""
        into_period = (times - self.offset) % self.period
        return np.maximum((self.size - into_period + self.period - 1) // self.period, 0)


@keyword(
    "sliding",
    synonyms=("hop", "hopping", "slide", "slidingwindow", "hoppingwindow"),
    sql_name="HOP",
    sql_arguments=("period", "size", "offset", "time"),
)
def sliding(size: Duration, period: Duration, offset: Duration = 0, time: TimeDomain = "event") -> Sliding:
    """Assign each record to every window that covers its time; windows of one size start every period.

    Flink calls them sliding, Spark sliding, SQL hopping windows.

    Args:
        size: the length of a window.
        period: the time between the starts of two windows.
        offset: shifts the windows. Without it a window starts at a multiple of the period since 1970, UTC.
        time: `event`, or `processing`: the clock of the batch that reads a record. No such record is late.

    Example:
        window(sliding("1 hour", "5 minutes"))

    Not promised: a low cost for a short period. A record is aggregated into each of its size / period windows.
    """
    size_ms = to_milliseconds(size, "window.sliding.size")
    period_ms = to_milliseconds(period, "window.sliding.period")
    return Sliding(size_ms, period_ms, to_milliseconds(offset, "window.sliding.offset"), time)
