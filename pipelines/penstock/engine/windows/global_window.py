"""The global window."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, Int64Array
from penstock.engine.windows.time_window import TimeWindow, WindowAssignment


@dataclass(frozen=True)
class Global(TimeWindow):
    """One window for all time: [-infinity, +infinity)."""

    never_ends: ClassVar[bool] = True

    def describe(self) -> str:
        """Describe the window."""
        return "one global window"

    @property
    def file_span_ms(self) -> None:
        """One file: all rows have one window."""

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return the first and the last time."""
        return f"{MIN_TIMESTAMP_MS + 1}L - 1L", f"{MAX_TIMESTAMP_MS}L"

    def assign(self, times: Int64Array) -> WindowAssignment:
        """Return the one window for each time."""
        return WindowAssignment.of_single_windows(
            np.full(len(times), MIN_TIMESTAMP_MS), np.full(len(times), MAX_TIMESTAMP_MS)
        )


@keyword("global", synonyms=("globalwindow", "globalwindows", "unbounded", "all"))
def global_window() -> Global:
    """Assign all records of a key to one window that never ends. In YAML it is `global`.

    Such a window needs a trigger that fires before its end, as in repeatedly(after_count(100)).

    Example:
        window(global_window()).trigger(repeatedly(after_count(100)))

    Not promised: that its state is ever removed.
    """
    return Global()
