"""Validate what a vectorized function returns, before it is used."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.columnar import to_numpy
from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.vectorized import (
    HAS_STATE_COLUMN,
    KEY_INDEX_COLUMN,
    ROW_TIME_COLUMN,
    TIMER_SCHEMA,
    KeyBatchUpdate,
)
from penstock.engine.plan.stateful_function import UNDECLARED_CLOCK_TIMER
from penstock.engine.state.header_columns import Int64Array


def check_states(updates: KeyBatchUpdate, schema: pa.Schema, key_count: int, function_name: str) -> pa.Table:
    """Return the states of all keys, in the declared columns."""
    states = require_table(updates.states, "states", function_name)
    if states.num_rows != key_count:
        message = f"it was called for {key_count} keys but returned {states.num_rows} states"
        raise StatefulFunctionError(function_name, message)
    if HAS_STATE_COLUMN not in states.column_names:
        states = states.append_column(HAS_STATE_COLUMN, pa.array(np.ones(key_count, bool)))
    states = _cast_columns(states, schema, "states", function_name)
    has_state = pc.fill_null(states.column(HAS_STATE_COLUMN), fill_value=False)
    value_columns = [
        pc.if_else(has_state, states.column(f.name), pa.scalar(None, f.type)) for f in list(schema)[1:]
    ]
    return pa.table([has_state, *value_columns], schema=schema)


def check_rows(
    rows: pa.Table, column_types: Mapping[str, pa.DataType], key_count: int, function_name: str
) -> tuple[Int64Array, pa.ChunkedArray | None, pa.Table]:
    """Return the key index of each row, its event time if the rows have one, and its values."""
    _refuse_unknown_columns(rows, [KEY_INDEX_COLUMN, ROW_TIME_COLUMN, *column_types], "rows", function_name)
    for name, column_type in column_types.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, column_type))
    time_field = pa.field(ROW_TIME_COLUMN, pa.int64()) if ROW_TIME_COLUMN in rows.column_names else None
    fields = [pa.field(KEY_INDEX_COLUMN, pa.int64()), *(() if time_field is None else (time_field,))]
    values = pa.schema([pa.field(name, column_type) for name, column_type in column_types.items()])
    cast = _cast_columns(rows, pa.schema([*fields, *values]), "rows", function_name)
    times = None if time_field is None else cast.column(ROW_TIME_COLUMN)
    return _check_key_numbers(cast, key_count, "rows", function_name), times, cast.select(values.names)


def check_timers(timers: pa.Table, key_count: int, function_name: str, *, allows_clock: bool) -> pa.Table:
    """Return the timers, with the defaults clock `event` and name "". Clock timers need `allows_clock`."""
    timers = require_table(timers, "timers", function_name)
    _refuse_unknown_columns(timers, TIMER_SCHEMA.names, "timers", function_name)
    for name, default in (("clock", "event"), ("name", "")):
        if name not in timers.column_names:
            timers = timers.append_column(name, pa.array([default] * timers.num_rows, pa.string()))
    cast = _cast_columns(timers, TIMER_SCHEMA, "timers", function_name)
    _check_key_numbers(cast, key_count, "timers", function_name)
    clocks = set(cast.column("clock").unique().to_pylist())
    if clocks - {"event", "processing"} or cast.column("at").null_count or cast.column("name").null_count:
        raise StatefulFunctionError(
            function_name, "its timers need a non-null at and name, and the clock event or processing"
        )
    if not allows_clock and "processing" in clocks:
        raise StatefulFunctionError(function_name, UNDECLARED_CLOCK_TIMER)
    return cast


def require_table(table: object, part: str, function_name: str) -> pa.Table:
    """Return the value if it is a table without duplicate column names."""
    if not isinstance(table, pa.Table):
        raise StatefulFunctionError(
            function_name, f"its {part} are {type(table).__name__}, not a pyarrow.Table"
        )
    names = table.column_names
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise StatefulFunctionError(function_name, f"its {part} have the column {duplicate} twice")
    return table


def _refuse_unknown_columns(table: pa.Table, allowed: Sequence[str], part: str, function_name: str) -> None:
    unknown = [name for name in table.column_names if name not in allowed]
    if unknown:
        raise StatefulFunctionError(
            function_name,
            f"its {part} have the unknown columns {', '.join(unknown)}; allowed: {', '.join(allowed)}",
        )


def _cast_columns(table: pa.Table, schema: pa.Schema, part: str, function_name: str) -> pa.Table:
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise StatefulFunctionError(function_name, f"its {part} lack the columns {', '.join(missing)}")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise StatefulFunctionError(function_name, f"its {part} do not fit the schema ({error})") from error


def _check_key_numbers(table: pa.Table, key_count: int, part: str, function_name: str) -> Int64Array:
    """Return the key indexes, after checking that each is in range."""
    column = table.column(KEY_INDEX_COLUMN)
    lowest, highest = pc.min(column).as_py(), pc.max(column).as_py()
    if column.null_count or (lowest is not None and (lowest < 0 or highest >= key_count)):
        raise StatefulFunctionError(
            function_name,
            f"its {part} have keys {lowest} to {highest}, but it was called for keys 0 to {key_count - 1}",
        )
    return to_numpy(column)
