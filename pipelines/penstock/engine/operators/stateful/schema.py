"""What a stage with a function of the user's keeps of a key, and the columns that the function gives."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.aggregates import Accumulator
from penstock.engine.columnar import StateColumn
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stateful_function import StatefulFunction, state_columns
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS

PER_KEY_COLUMNS = (
    StateColumn("memory", pa.binary(), None),
    StateColumn("timers", pa.binary(), None),
    StateColumn("newest", pa.int64(), MIN_TIMESTAMP_MS),
)
"""What is kept of a key: what the function remembers and the timers that wait, both packed, and the newest time."""

STATE_COLUMN_PREFIX = "memory_"
"""What the columns begin with in which a vectorized function's state is kept."""

WAITING_RECORDS_COLUMN = "records_to_come"
"""The column of records that wait until the watermark has passed them, by time and then by address."""

RECORD_ADDRESS_FIELDS = (
    pa.field("_topic", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_time", pa.int64()),
)

STATE_PRESENT_COLUMN = "has_memory"
WAITING_TIMERS_TYPE = pa.list_(
    pa.struct([pa.field("at", pa.int64()), pa.field("clock", pa.string()), pa.field("name", pa.string())])
)

SPARK_TO_ARROW_TYPES = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BINARY": pa.binary(),
}


def to_arrow_type(type_name: str, field: str) -> pa.DataType:
    """The Arrow type of a word of Spark's. Raises DefinitionError for one that is not known."""
    normalized = type_name.strip().upper()
    if normalized.startswith("ARRAY<") and normalized.endswith(">"):
        return pa.list_(to_arrow_type(normalized[6:-1], field))
    if normalized not in SPARK_TO_ARROW_TYPES:
        raise DefinitionError(
            field, f"{type_name!r}", f"Write one of: {', '.join(SPARK_TO_ARROW_TYPES)}, or ARRAY<one of them>"
        )
    return SPARK_TO_ARROW_TYPES[normalized]


def list_stateful_columns(window: StatefulFunction, record_fields: Iterable[pa.Field]) -> list[StateColumn]:
    """What is kept of a key; where records are `told` in order of event time, those that wait as well."""
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
    return [has_state, *fields, timers, StateColumn("newest", pa.int64(), MIN_TIMESTAMP_MS)]


def list_state_fields(window: StatefulFunction) -> Sequence[pa.Field]:
    """The fields of the state of a vectorized function."""
    columns = state_columns(window.state.resolve())
    return [
        pa.field(column.name, to_arrow_type(column.type, f"stateful.state.{column.name}"))
        for column in columns
    ]


def list_result_columns(window: StatefulFunction | ChangelogWindows) -> Iterator[Accumulator]:
    """The columns of the function's rows, or of others' panes, in the place of aggregates: nothing accumulates."""
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
