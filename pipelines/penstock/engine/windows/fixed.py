"""Fixed windows."""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Fixed(TimeWindow):
    """Fixed windows: [k * size + offset, (k + 1) * size + offset)."""

    size: int
    offset: int = 0
    time: TimeDomain = "event"

    def __post_init__(self) -> None:
        require_positive(self.size, "window.fixed.size")
        require_non_negative(self.offset, "window.fixed.offset")
        require(self.offset < self.size, "window.fixed.offset", self.offset, "Give less than the size")
        require_one_of(self.time, TIME_DOMAINS, "window.fixed.time")

    def describe(self) -> str:
        """Describe size, offset and clock."""
        shift = format_offset(self.offset)
        return f"fixed windows of {format_duration(self.size)}{shift}{describe_time_domain(self.time)}"

    @property
    def uses_processing_time(self) -> bool:
        """Whether the batch clock assigns records."""
        return self.time == "processing"

    @property
    def clock_boundaries(self) -> tuple[tuple[int, int], ...]:
        """The clocks at which one window ends and the next starts."""
        return ((self.size, self.offset),) if self.uses_processing_time else ()

    @property
    def max_reach_ms(self) -> int:
        """A window ends at most its size after an element."""
        return self.size

    @property
    def file_span_ms(self) -> int:
        """A file for each window."""
        return self.size

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return the bounds by the remainder of the time."""
        start = f"({time_sql} - pmod({time_sql} - {self.offset}, {self.size}))"
        return start, f"({start} + {self.size})"

    def assign(self, times: Int64Array) -> WindowAssignment:
        """Return the window of each time."""
        start = times - (times - self.offset) % self.size
        return WindowAssignment.of_single_windows(start, start + self.size)


@keyword(
    "fixed",
    synonyms=("tumble", "fixedwindows", "fixedwindow", "tumblingwindow", "timewindow"),
    duration_hint="{fixed: {}}",
    sql_name="TUMBLE",
)
def fixed(size: Duration, offset: Duration = 0, time: TimeDomain = "event") -> Fixed:
    """Assign each record to one window; windows of one size follow one another.

    Flink calls them tumbling, Beam fixed windows.

    Args:
        size: the length of a window.
        offset: shifts the windows. Without it a window starts at a multiple of the size since 1970, UTC.
        time: `event`, or `processing`: the clock of the batch that reads a record. No such record is late.

    Example:
        window(fixed("1 minute"))

    Not promised: windows of a month, which have no fixed size. Use `calendar("month")`.
    """
    size_ms = to_milliseconds(size, "window.fixed.size")
    return Fixed(size_ms, to_milliseconds(offset, "window.fixed.offset"), time)
