"""State columns and result columns of stateful functions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.aggregates import Accumulator
from penstock.engine.columnar import StateColumn
from penstock.engine.definition.sql_arrow_types import find_arrow_type
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.column_types import DECLARABLE_TYPES
from penstock.engine.plan.stateful_function import StatefulFunction, state_columns
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS

PER_KEY_COLUMNS = (
    StateColumn("function_state", pa.binary(), None),
    StateColumn("timers", pa.binary(), None),
    StateColumn("newest_time", pa.int64(), MIN_TIMESTAMP_MS),
)
"""State columns of a key: encoded state and timers, and the newest event time."""

STATE_COLUMN_PREFIX = "function_state_"
"""Prefix of the columns that store a vectorized function's state."""

WAITING_RECORDS_COLUMN = "waiting_records"
"""The column of records that wait for the watermark, sorted by time and address."""

RECORD_ADDRESS_FIELDS = (
    pa.field("_topic", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_time", pa.int64()),
)

STATE_PRESENT_COLUMN = "has_function_state"
WAITING_TIMERS_TYPE = pa.list_(
    pa.struct([pa.field("at", pa.int64()), pa.field("clock", pa.string()), pa.field("name", pa.string())])
)


def to_arrow_type(type_name: str, field: str) -> pa.DataType:
    """Return the Arrow type for a Spark type name. Raise DefinitionError for an unknown name."""
    arrow_type = find_arrow_type(type_name)
    if arrow_type is None:
        fix = f"Use one of: {', '.join(DECLARABLE_TYPES)}, or ARRAY<one of them>"
        raise DefinitionError(field, f"unknown type {type_name!r}", fix)
    return arrow_type


def list_stateful_columns(window: StatefulFunction, record_fields: Iterable[pa.Field]) -> list[StateColumn]:
    """Return the state columns of a key. In event-time order they include the waiting records."""
    if window.is_event_time_ordered:
        return [
            *PER_KEY_COLUMNS,
            StateColumn(
                WAITING_RECORDS_COLUMN, pa.list_(pa.struct([*RECORD_ADDRESS_FIELDS, *record_fields])), None
            ),
        ]
    if not window.vectorized:
        return list(PER_KEY_COLUMNS)
    fields = [
        StateColumn(f"{STATE_COLUMN_PREFIX}{field.name}", field.type, None)
        for field in list_state_fields(window)
    ]
    has_state, timers = (
        StateColumn(STATE_PRESENT_COLUMN, pa.bool_(), initial=False),
        StateColumn("timers", WAITING_TIMERS_TYPE, None),
    )
    return [has_state, *fields, timers, StateColumn("newest_time", pa.int64(), MIN_TIMESTAMP_MS)]


def list_state_fields(window: StatefulFunction) -> Sequence[pa.Field]:
    """Return the state fields of a vectorized function."""
    columns = state_columns(window.state.resolve())
    return [
        pa.field(column.name, to_arrow_type(column.type, f"stateful.state.{column.name}"))
        for column in columns
    ]


def list_result_columns(window: StatefulFunction | ChangelogWindows) -> Iterator[Accumulator]:
    """Yield the columns of a function's rows, or of upstream panes, as accumulators without parts."""
    columns, yaml_path = (
        (window.columns, "read_panes.columns")
        if isinstance(window, ChangelogWindows)
        else (window.columns, "stateful.returns")
    )
    for column in columns:
        column_type = to_arrow_type(column.type, f"{yaml_path}.{column.name}")
        yield Accumulator(column.name, column_type, (), lambda _rows: _refuse_values())


def _refuse_values() -> Any:
    raise AssertionError("the rows of a function are not computed from state")
