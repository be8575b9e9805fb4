"""State columns of a record that waits for partners."""

from collections.abc import Iterable

import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.windows.join_window import JoinWindow

LEFT_COLUMN, TIME_COLUMN, MATCHED_COLUMN, END_MARKER_COLUMN = "is_left", "time", "matched", "is_end_marker"


def list_join_columns(window: JoinWindow, fields: Iterable[pa.Field]) -> list[StateColumn]:
    """Return the columns: side, event time, whether it matched, whether it is an end marker, and its fields."""
    return [
        StateColumn(LEFT_COLUMN, pa.bool_(), initial=False),
        StateColumn(TIME_COLUMN, pa.int64(), 0),
        StateColumn(MATCHED_COLUMN, pa.bool_(), initial=False),
        *(
            [StateColumn(END_MARKER_COLUMN, pa.bool_(), initial=False)]
            if window.record_condition is not None
            else []
        ),
        *(StateColumn(buffered_column(field.name), field.type, None) for field in fields),
    ]


def buffered_column(field: str) -> str:
    """Return the state column of a field. The prefix avoids conflicts with other columns."""
    return f"buffered_{field}"
