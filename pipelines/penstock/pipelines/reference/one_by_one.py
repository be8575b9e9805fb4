"""A vectorised function asked about one key at a time: what it says of a key must not depend on those beside it."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.pipelines.fold.returned import arrow_type
from penstock.pipelines.plan.remembering import Remembering, memory_columns
from penstock.pipelines.plan.source import Column
from penstock.pipelines.remembering import Answer, Call, Row, Timer
from penstock.pipelines.vectorised import AT, KEY, KNOWN, TIME, TIMERS, TO, Calls

Asked = Callable[[Call[Any]], Answer[Any]]


def one_by_one(window: Remembering, key: Sequence[str], columns: Sequence[Column]) -> Asked:
    """Return the function as one that takes a key; `columns` are the fields of the records and their types."""
    types = {column.name: arrow_type(column.type, column.name) for column in columns}
    fields = pa.schema([pa.field(name, kind) for name, kind in types.items() if name not in key])
    keys = pa.schema([pa.field(name, types[name]) for name in key])
    memory = pa.schema(
        [
            pa.field(each.name, arrow_type(each.type, each.name))
            for each in memory_columns(window.state.resolve())
        ]
    )

    def asked(call: Call[Any]) -> Answer[Any]:
        named = dict(zip(key, call.key, strict=True))
        has = {KNOWN: call.state is not None, **(call.state or {})}
        records = [{KEY: 0, TIME: each.time, **each.fields} for each in call.records]
        calls = Calls(
            # A table without columns has no rows: where there is no key, nobody can tell from it that there is one.
            keys=pa.Table.from_pylist([named], schema=keys),
            states=pa.Table.from_pylist([has], schema=pa.schema([pa.field(KNOWN, pa.bool_()), *memory])),
            records=pa.Table.from_pylist(records, schema=pa.schema([*NUMBERED, *keys, *fields])),
            timers=timers(call.timers),
            waiting=timers(call.waiting),
            watermark=call.watermark,
            clock=call.clock,
        )
        answers = window.function.resolve()(calls)
        state = answers.states.to_pylist()[0]
        kept = None if not state.pop(KNOWN, True) else state
        rows = [] if answers.rows is None else answers.rows.to_pylist()
        made = [
            Row({n: v for n, v in row.items() if n not in (KEY, AT, TO)}, row.get(AT), row.get(TO))
            for row in rows
        ]
        again = None if answers.timers is None else [timer(each) for each in answers.timers.to_pylist()]
        return Answer(kept, made, again)

    return asked


NUMBERED = (pa.field(KEY, pa.int64()), pa.field(TIME, pa.int64()))


def timers(these: Sequence[Timer]) -> pa.Table:
    """Return timers of the only key as a table."""
    rows = [{KEY: 0, "at": each.at, "clock": each.clock, "name": each.name} for each in these]
    return pa.Table.from_pylist(rows, schema=TIMERS)


def timer(row: dict[str, Any]) -> Timer:
    """Return a timer of a table."""
    return Timer(row["at"], row.get("clock", "event"), row.get("name", ""))
