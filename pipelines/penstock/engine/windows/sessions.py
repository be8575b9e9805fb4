"""Session windows."""

from dataclasses import dataclass

from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.time_window import TimeWindow, WindowAssignment


@dataclass(frozen=True)
class Sessions(TimeWindow):
    """Session windows: a record opens [t, t + gap), and overlapping or adjacent windows of a key are merged."""

    gap: int

    def __post_init__(self) -> None:
        require_positive(self.gap, "window.sessions.gap")

    def describe(self) -> str:
        """Describe when a session ends."""
        return f"sessions that end after {format_duration(self.gap)} without a record of the key"

    @property
    def merge_gap(self) -> int:
        """Sessions of a key merge if they are not more than the gap apart."""
        return self.gap

    @property
    def max_reach_ms(self) -> int:
        """A record extends its session by the gap."""
        return self.gap

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return the bounds of a piece one gap long: all its records belong to the same session."""
        start = f"({time_sql} - pmod({time_sql}, {self.gap}))"
        return start, f"({start} + {self.gap})"

    def assign(self, times: Int64Array) -> WindowAssignment:
        """Return the interval that each element covers."""
        return WindowAssignment.of_single_windows(times, times + self.gap)


@keyword("sessions", synonyms=("session", "sessionwindow", "gap"), sql_name="SESSION")
def sessions(gap: Duration) -> Sessions:
    """Group the records of a key into sessions, which end after a gap without records.

    Args:
        gap: the time without records that ends a session.

    Example:
        key("user").window(sessions("10 minutes"))

    Not promised: that a session keeps its start. A late record may extend it, or merge two of them.
    """
    return Sessions(to_milliseconds(gap, "window.sessions.gap"))
