"""State columns of a record that waits for partners."""

from collections.abc import Iterable

import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.plan.join_windows import AsOf
from penstock.engine.plan.windows import JoinWindow, Window

LEFT_COLUMN, TIME_COLUMN, MATCHED_COLUMN, END_MARKER_COLUMN = "is_left", "time", "matched", "is_end_marker"


def list_join_columns(window: JoinWindow, fields: Iterable[pa.Field]) -> list[StateColumn]:
    """Return the columns: side, event time, whether it matched, whether it is an end marker, and its fields."""
    return [
        StateColumn(LEFT_COLUMN, pa.bool_(), initial=False),
        StateColumn(TIME_COLUMN, pa.int64(), 0),
        StateColumn(MATCHED_COLUMN, pa.bool_(), initial=False),
        *([StateColumn(END_MARKER_COLUMN, pa.bool_(), initial=False)] if has_end_markers(window) else []),
        *(StateColumn(buffered_column(field.name), field.type, None) for field in fields),
    ]


def has_end_markers(window: Window) -> bool:
    """Return whether records can mark the end of a version's validity."""
    return isinstance(window, AsOf) and window.ends is not None


def buffered_column(field: str) -> str:
    """Return the state column of a field. The prefix avoids conflicts with other columns."""
    return f"buffered_{field}"
