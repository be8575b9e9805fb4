"""State columns of order windows, and the record fields that Spark sends for them."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.windows.order_window import DELTA_BASE_COLUMN, OrderWindow

KEY_HEADER_COLUMNS = (
    StateColumn("number", pa.int64(), 0),
    StateColumn("since_clock", pa.int64(), 0),
    StateColumn("elements_since_pane", pa.int64(), 0),
)
"""Header of a key: the number of its next window; the clock at which the open window started, or since when
records wait to be shown; and how many wait. Each row of the key repeats it.
"""

BUFFERED_COLUMNS = (
    StateColumn("records", pa.int64(), 0),
    StateColumn("position", pa.int64(), 0),
    StateColumn("arrival_clock", pa.int64(), 0),
)
"""Columns of buffered records beside their aggregates: how many the row stands for (0 for a key without any),
its position among the key's rows, and the clock at which they arrived.
"""

ELEMENT_FIELDS = (pa.field("_time", pa.int64()), pa.field("_offset", pa.int64()))
MATCHED_FIELD = pa.field("_matched", pa.bool_())
WINDOW_NUMBER_FIELD = pa.field("window_number", pa.int64())
"""The number of a pane's order window within its key, from 0."""


def list_record_fields(stage: Stage, field_types: Mapping[str, pa.DataType]) -> tuple[pa.Field, ...]:
    """Return the record fields that the stage reads, beside its key."""
    if isinstance(stage.window, StatefulFunction | ChangelogWindows):
        return tuple(
            pa.field(field_name, field_type)
            for field_name, field_type in field_types.items()
            if field_name not in stage.key and not field_name.startswith("_")
        )
    aggregate_names = [name for output in stage.aggregates for name in output.aggregate.used_fields]
    wanted_names = dict.fromkeys([*aggregate_names, *stage.window.numeric_fields])
    return tuple(pa.field(name, field_types[name]) for name in wanted_names if name not in stage.key)


def list_ordered_columns(
    window: OrderWindow, field_types: Mapping[str, pa.DataType]
) -> Iterable[StateColumn]:
    """Yield the state columns of a key and its buffered records, without the aggregates."""
    yield from KEY_HEADER_COLUMNS
    yield from BUFFERED_COLUMNS
    for field in window.numeric_fields:
        yield StateColumn(delta_column(field), field_types[field], None)
    if window.base_field is not None:
        yield StateColumn(DELTA_BASE_COLUMN, field_types[window.base_field], None)


def delta_column(field: str) -> str:
    """Return the state column of a field that a policy compares.

    Where a row stands for several records, it holds the first value.
    """
    return f"delta_{field}"
