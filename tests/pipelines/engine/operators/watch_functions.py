"""One stateful function, written twice: per key in Python, and vectorized in Arrow."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.functions.vectorized import (
    HAS_STATE_COLUMN,
    KEY_INDEX_COLUMN,
    ROW_TIME_COLUMN,
    TIMER_SCHEMA,
    KeyBatchContext,
    KeyBatchUpdate,
)
from penstock.engine.plan.sources import Column


@dataclass(frozen=True)
class Tally:
    """The state of a key."""

    records: int = 0
    total: int = 0
    word: str | None = None


RETURNS = (Column("what", "STRING"), Column("seen", "BIGINT"), Column("total", "BIGINT"))


def watch_one(call: KeyContext[Tally]) -> KeyUpdate[Tally]:
    """Report great values, silence after five of event time, and a clock timer after the first record.

    A key with a low total drops its state. A timer that sets itself again may be due immediately.
    """
    tally, rows = call.state or Tally(), []
    waiting = [timer for timer in call.pending_timers if timer.name != "quiet" or not call.records]
    for read in call.records:
        value = read.fields["value"] or 0
        tally = Tally(tally.records + 1, tally.total + value, read.fields["word"])
        if value > 3:
            rows.append(OutputRow({"what": "great", "seen": tally.records, "total": tally.total}, read.time))
    if call.records:
        waiting.append(Timer(call.records[-1].time + 5, "event", "quiet"))
        if call.state is None:
            waiting.append(Timer(call.batch_clock + 4, "processing", "first"))
    for timer in call.due_timers:
        what = f"{timer.name} {tally.word}"
        rows.append(OutputRow({"what": what, "seen": tally.records, "total": tally.total}))
    waiting += [Timer(timer.at + 3, "event", "again") for timer in call.due_timers if timer.name == "quiet"]
    return KeyUpdate(None if tally.total < -1 else tally, rows, waiting)


def watch_all(calls: KeyBatchContext) -> KeyBatchUpdate:
    """The same, vectorized."""
    count = calls.states.num_rows
    before = {name: _numbers(calls.states, name) for name in ("records", "total")}
    key, value = _numbers(calls.records, KEY_INDEX_COLUMN), _numbers(calls.records, "value")
    begins = np.searchsorted(key, np.arange(count))
    came = np.bincount(key, minlength=count)
    sums = np.append(0, np.cumsum(value))
    seen = before["records"][key] + np.arange(len(key)) - begins[key] + 1
    total = before["total"][key] + sums[1:] - sums[begins[key]]
    great = value > 3
    last = np.where(came > 0, begins + came - 1, -1)
    after = {
        "records": before["records"] + came,
        "total": before["total"] + sums[begins + came] - sums[begins],
    }
    words = pc.if_else(
        pa.array(came > 0), _taken(calls.records.column("word"), last), calls.states.column("word")
    )
    told = _numbers(calls.due_timers, KEY_INDEX_COLUMN)
    names = calls.due_timers.column("name").to_pylist()
    word = words.to_pylist()
    rows = pa.table(
        {
            KEY_INDEX_COLUMN: np.append(key[great], told),
            ROW_TIME_COLUMN: pa.array(
                [*_numbers(calls.records, "_time")[great].tolist(), *(None for _ in names)], pa.int64()
            ),
            "what": pa.array(
                ["great"] * int(great.sum()) + [f"{n} {word[k]}" for n, k in zip(names, told, strict=True)],
                pa.string(),
            ),
            "seen": np.append(seen[great], after["records"][told]),
            "total": np.append(total[great], after["total"][told]),
        }
    )
    states = pa.table({HAS_STATE_COLUMN: after["total"] >= -1, **after, "word": words})
    return KeyBatchUpdate(states, rows, _timers(calls, came, last))


def _timers(calls: KeyBatchContext, came: Any, last: Any) -> pa.Table:
    waiting = calls.pending_timers
    ended = np.asarray(pc.equal(waiting.column("name"), "quiet")) & (
        came[_numbers(waiting, KEY_INDEX_COLUMN)] > 0
    )
    times = _numbers(calls.records, "_time")
    new = came > 0
    first = new & ~np.asarray(calls.states.column(HAS_STATE_COLUMN))
    quiet = calls.due_timers.filter(pc.equal(calls.due_timers.column("name"), "quiet"))
    kinds = [
        (np.flatnonzero(new), times[last[new]] + 5, "event", "quiet"),
        (np.flatnonzero(first), np.full(int(first.sum()), calls.batch_clock + 4), "processing", "first"),
        (_numbers(quiet, KEY_INDEX_COLUMN), _numbers(quiet, "at") + 3, "event", "again"),
    ]
    tables = [
        pa.table([k, at, [clock] * len(k), [name] * len(k)], schema=TIMER_SCHEMA)
        for k, at, clock, name in kinds
    ]
    return pa.concat_tables([waiting.filter(pa.array(~ended)), *tables])


def _numbers(table: pa.Table, name: str) -> Any:
    return np.asarray(table.column(name).fill_null(0)).astype(np.int64)


def _taken(column: pa.ChunkedArray, places: Any) -> pa.ChunkedArray:
    return column.take(pa.array(places, mask=places < 0))
