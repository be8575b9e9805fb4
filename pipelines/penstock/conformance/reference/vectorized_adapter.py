"""Calls a vectorized function for one key at a time: its result for a key must not depend on other keys."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.functions.vectorized import (
    HAS_STATE_COLUMN,
    KEY_INDEX_COLUMN,
    RECORD_TIME_COLUMN,
    ROW_OUTPUT_COLUMN,
    ROW_TIME_COLUMN,
    TIMER_SCHEMA,
    KeyBatchContext,
)
from penstock.engine.operators.stateful.schema import to_arrow_type
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stateful_function import StatefulFunction, state_columns

PerKeyFunction = Callable[[KeyContext[Any]], KeyUpdate[Any]]


def adapt_vectorized(
    window: StatefulFunction, key: Sequence[str], columns: Sequence[Column]
) -> PerKeyFunction:
    """Return the function as one that takes a single key; `columns` are the fields of the records."""
    types = {column.name: to_arrow_type(column.type, column.name) for column in columns}
    value_schema = pa.schema([pa.field(name, kind) for name, kind in types.items() if name not in key])
    key_schema = pa.schema([pa.field(name, types[name]) for name in key])
    state_schema = pa.schema(
        [
            pa.field(state_column.name, to_arrow_type(state_column.type, state_column.name))
            for state_column in state_columns(window.state.resolve())
        ]
    )

    def call_one_key(call: KeyContext[Any]) -> KeyUpdate[Any]:
        key_row = dict(zip(key, call.key, strict=True))
        state_row = {HAS_STATE_COLUMN: call.state is not None, **(call.state or {})}
        records = [
            {KEY_INDEX_COLUMN: 0, RECORD_TIME_COLUMN: item.time, **item.fields} for item in call.records
        ]
        batch_calls = KeyBatchContext(
            # A table without columns has no rows, so an empty key needs its row count here.
            keys=pa.Table.from_pylist([key_row], schema=key_schema),
            states=pa.Table.from_pylist(
                [state_row], schema=pa.schema([pa.field(HAS_STATE_COLUMN, pa.bool_()), *state_schema])
            ),
            records=pa.Table.from_pylist(
                records, schema=pa.schema([*RECORD_KEY_FIELDS, *key_schema, *value_schema])
            ),
            due_timers=timers_to_table(call.due_timers),
            pending_timers=timers_to_table(call.pending_timers),
            watermark=call.watermark,
            batch_clock=call.batch_clock,
        )
        updates = window.function.resolve()(batch_calls)
        state = updates.states.to_pylist()[0]
        new_state = None if not state.pop(HAS_STATE_COLUMN, True) else state
        rows = [] if updates.rows is None else updates.rows.to_pylist()
        output_rows = [
            OutputRow(
                {
                    n: v
                    for n, v in row.items()
                    if n not in (KEY_INDEX_COLUMN, ROW_TIME_COLUMN, ROW_OUTPUT_COLUMN)
                },
                row.get(ROW_TIME_COLUMN),
                row.get(ROW_OUTPUT_COLUMN),
            )
            for row in rows
        ]
        new_timers = (
            None if updates.timers is None else [timer_from_row(item) for item in updates.timers.to_pylist()]
        )
        return KeyUpdate(new_state, output_rows, new_timers)

    return call_one_key


RECORD_KEY_FIELDS = (pa.field(KEY_INDEX_COLUMN, pa.int64()), pa.field(RECORD_TIME_COLUMN, pa.int64()))


def timers_to_table(timers: Sequence[Timer]) -> pa.Table:
    """Return timers of the only key as a table."""
    rows = [
        {KEY_INDEX_COLUMN: 0, "at": timer.at, "clock": timer.clock, "name": timer.name} for timer in timers
    ]
    return pa.Table.from_pylist(rows, schema=TIMER_SCHEMA)


def timer_from_row(row: dict[str, Any]) -> Timer:
    """Return a timer from a row."""
    return Timer(row["at"], row.get("clock", "event"), row.get("name", ""))
