"""The base of time windows, whose bounds follow from the time of an element."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.window import Window

TimeDomain: TypeAlias = Literal["event", "processing"]
TIME_DOMAINS = ("event", "processing")


@dataclass(frozen=True)
class WindowAssignment:
    """One row for each element and window: the number of the element, and the bounds of the window."""

    element: Int64Array
    start: Int64Array
    end: Int64Array

    @classmethod
    def of_single_windows(cls, start: Int64Array, end: Int64Array) -> "WindowAssignment":
        """Return the assignment of elements that lie in exactly one window each."""
        return cls(np.arange(len(start)), start, end)


class TimeWindow(Window):
    """Windows that follow from the time of an element. Equal starts mean equal windows.

    Spark assigns records in SQL. Numpy assigns the panes that a downstream stage reads, which never reach Spark.
    """

    @abstractmethod
    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return Spark SQL for the start and end of the window of a time.

        If `starts_sql` is implemented, `time_sql` is the start of a window. Windows that merge return a piece of at
        most one `merge_gap`, whose records certainly belong together.
        """

    @abstractmethod
    def assign(self, times: Int64Array) -> WindowAssignment:
        """Return the windows of each of these times. Windows that merge return the interval that a time covers."""

    @property
    def may_overlap(self) -> bool:
        """Whether an element may lie in several windows: if there is SQL for several starts."""
        return self.starts_sql("0L") is not None

    @property
    def has_fixed_bounds(self) -> bool:
        """Whether the end of a window follows from its start: unless it grows or never ends."""
        return self.merge_gap is None and not self.never_ends

    def count_windows(self, times: Int64Array) -> Int64Array:
        """Return the number of windows that contain each of these times."""
        return np.bincount(self.assign(times).element, minlength=len(times))


def describe_time_domain(time: TimeDomain) -> str:
    """Describe that windows are cut by the batch clock."""
    return " of processing time (the batch clock)" if time == "processing" else ""
