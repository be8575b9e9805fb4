"""What a vectorised function answered, looked at before anything is made of it: each mistake has one sentence."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.errors import RememberingError
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.plan.remembering import UNSAID
from penstock.pipelines.state.columns import Ints
from penstock.pipelines.vectorised import AT, KEY, KNOWN, TIMERS, Answers


def answered_states(answers: Answers, schema: pa.Schema, keys: int, function: str) -> pa.Table:
    """The states of all keys, in the columns that are declared."""
    states = a_table(answers.states, "states", function)
    if states.num_rows != keys:
        found = f"it was asked about {keys} keys, and its states are {states.num_rows}"
        raise RememberingError(function, found)
    if KNOWN not in states.column_names:
        states = states.append_column(KNOWN, pa.array(np.ones(keys, bool)))
    states = _cast(states, schema, "states", function)
    known = pc.fill_null(states.column(KNOWN), fill_value=False)
    others = [pc.if_else(known, states.column(f.name), pa.scalar(None, f.type)) for f in list(schema)[1:]]
    return pa.table([known, *others], schema=schema)


def answered_rows(
    rows: pa.Table, columns: Mapping[str, pa.DataType], keys: int, function: str
) -> tuple[Ints, pa.ChunkedArray | None, pa.Table]:
    """The number of each row's key, its event time where rows have one, and its values."""
    _refuse_others(rows, [KEY, AT, *columns], "rows", function)
    for name, kind in columns.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
    at = pa.field(AT, pa.int64()) if AT in rows.column_names else None
    fields = [pa.field(KEY, pa.int64()), *(() if at is None else (at,))]
    values = pa.schema([pa.field(name, kind) for name, kind in columns.items()])
    cast = _cast(rows, pa.schema([*fields, *values]), "rows", function)
    times = None if at is None else cast.column(AT)
    return _numbers(cast, keys, "rows", function), times, cast.select(values.names)


def answered_timers(timers: pa.Table, keys: int, function: str, *, clock: bool) -> pa.Table:
    """The timers, those of the watermark and without a name where nothing else is said; others where `clock` is."""
    timers = a_table(timers, "timers", function)
    _refuse_others(timers, TIMERS.names, "timers", function)
    for name, word in (("clock", "event"), ("name", "")):
        if name not in timers.column_names:
            timers = timers.append_column(name, pa.array([word] * timers.num_rows, pa.string()))
    cast = _cast(timers, TIMERS, "timers", function)
    _numbers(cast, keys, "timers", function)
    clocks = set(cast.column("clock").unique().to_pylist())
    if clocks - {"event", "processing"} or cast.column("at").null_count or cast.column("name").null_count:
        raise RememberingError(
            function, "its timers have an at and a name, and the clock event or processing"
        )
    if not clock and "processing" in clocks:
        raise RememberingError(function, UNSAID)
    return cast


def a_table(found: object, what: str, function: str) -> pa.Table:
    """What was answered, if it is a table in which no two columns have one name."""
    if not isinstance(found, pa.Table):
        raise RememberingError(function, f"its {what} are {type(found).__name__}, no pyarrow.Table")
    names = found.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RememberingError(function, f"its {what} have {twice} twice")
    return found


def _refuse_others(table: pa.Table, known: Sequence[str], what: str, function: str) -> None:
    others = [name for name in table.column_names if name not in known]
    if others:
        raise RememberingError(function, f"its {what} have {', '.join(others)}; known are {', '.join(known)}")


def _cast(table: pa.Table, schema: pa.Schema, what: str, function: str) -> pa.Table:
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise RememberingError(function, f"its {what} lack {', '.join(missing)}")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as problem:
        raise RememberingError(function, f"its {what} do not fit ({problem})") from problem


def _numbers(table: pa.Table, keys: int, what: str, function: str) -> Ints:
    """The numbers of keys, each of which was asked about."""
    column = table.column(KEY)
    least, most = pc.min(column).as_py(), pc.max(column).as_py()
    if column.null_count or (least is not None and (least < 0 or most >= keys)):
        found = f"its {what} are of keys {least} to {most}, and it was asked about 0 to {keys - 1}"
        raise RememberingError(function, found)
    return numpy_column(column)
