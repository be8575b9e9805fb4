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
class RecordTally:
    """The state of a key."""

    records: int = 0
    total: int = 0
    word: str | None = None


RETURNS = (Column("what", "STRING"), Column("seen", "BIGINT"), Column("total", "BIGINT"))


def watch_per_key(call: KeyContext[RecordTally]) -> KeyUpdate[RecordTally]:
    """Report great values, silence after five of event time, and a clock timer after the first record.

    A key with a low total drops its state. A timer that sets itself again may be due immediately.
    """
    tally, rows = call.state or RecordTally(), []
    timers = [timer for timer in call.pending_timers if timer.name != "quiet" or not call.records]
    for read in call.records:
        value = read.fields["value"] or 0
        tally = RecordTally(tally.records + 1, tally.total + value, read.fields["word"])
        if value > 3:
            rows.append(OutputRow({"what": "great", "seen": tally.records, "total": tally.total}, read.time))
    if call.records:
        timers.append(Timer(call.records[-1].time + 5, "event", "quiet"))
        if call.state is None:
            timers.append(Timer(call.batch_clock + 4, "processing", "first"))
    for timer in call.due_timers:
        what = f"{timer.name} {tally.word}"
        rows.append(OutputRow({"what": what, "seen": tally.records, "total": tally.total}))
    timers += [Timer(timer.at + 3, "event", "again") for timer in call.due_timers if timer.name == "quiet"]
    return KeyUpdate(None if tally.total < -1 else tally, rows, timers)


def watch_vectorized(calls: KeyBatchContext) -> KeyBatchUpdate:
    """The same, vectorized."""
    count = calls.states.num_rows
    before = {name: _to_integers(calls.states, name) for name in ("records", "total")}
    key, value = _to_integers(calls.records, KEY_INDEX_COLUMN), _to_integers(calls.records, "value")
    first_rows = np.searchsorted(key, np.arange(count))
    record_counts = np.bincount(key, minlength=count)
    sums = np.append(0, np.cumsum(value))
    seen = before["records"][key] + np.arange(len(key)) - first_rows[key] + 1
    total = before["total"][key] + sums[1:] - sums[first_rows[key]]
    is_great = value > 3
    last_rows = np.where(record_counts > 0, first_rows + record_counts - 1, -1)
    after = {
        "records": before["records"] + record_counts,
        "total": before["total"] + sums[first_rows + record_counts] - sums[first_rows],
    }
    words = pc.if_else(
        pa.array(record_counts > 0),
        _take_or_null(calls.records.column("word"), last_rows),
        calls.states.column("word"),
    )
    due_keys = _to_integers(calls.due_timers, KEY_INDEX_COLUMN)
    names = calls.due_timers.column("name").to_pylist()
    word = words.to_pylist()
    rows = pa.table(
        {
            KEY_INDEX_COLUMN: np.append(key[is_great], due_keys),
            ROW_TIME_COLUMN: pa.array(
                [*_to_integers(calls.records, "_time")[is_great].tolist(), *(None for _ in names)], pa.int64()
            ),
            "what": pa.array(
                ["great"] * int(is_great.sum())
                + [f"{n} {word[k]}" for n, k in zip(names, due_keys, strict=True)],
                pa.string(),
            ),
            "seen": np.append(seen[is_great], after["records"][due_keys]),
            "total": np.append(total[is_great], after["total"][due_keys]),
        }
    )
    states = pa.table({HAS_STATE_COLUMN: after["total"] >= -1, **after, "word": words})
    return KeyBatchUpdate(states, rows, _build_timers(calls, record_counts, last_rows))


def _build_timers(calls: KeyBatchContext, record_counts: Any, last_rows: Any) -> pa.Table:
    pending = calls.pending_timers
    is_ended = np.asarray(pc.equal(pending.column("name"), "quiet")) & (
        record_counts[_to_integers(pending, KEY_INDEX_COLUMN)] > 0
    )
    times = _to_integers(calls.records, "_time")
    has_records = record_counts > 0
    is_first = has_records & ~np.asarray(calls.states.column(HAS_STATE_COLUMN))
    quiet_timers = calls.due_timers.filter(pc.equal(calls.due_timers.column("name"), "quiet"))
    timers_to_set = [
        (np.flatnonzero(has_records), times[last_rows[has_records]] + 5, "event", "quiet"),
        (
            np.flatnonzero(is_first),
            np.full(int(is_first.sum()), calls.batch_clock + 4),
            "processing",
            "first",
        ),
        (
            _to_integers(quiet_timers, KEY_INDEX_COLUMN),
            _to_integers(quiet_timers, "at") + 3,
            "event",
            "again",
        ),
    ]
    tables = [
        pa.table([keys, at, [clock] * len(keys), [name] * len(keys)], schema=TIMER_SCHEMA)
        for keys, at, clock, name in timers_to_set
    ]
    return pa.concat_tables([pending.filter(pa.array(~is_ended)), *tables])


def _to_integers(table: pa.Table, name: str) -> Any:
    return np.asarray(table.column(name).fill_null(0)).astype(np.int64)


def _take_or_null(column: pa.ChunkedArray, positions: Any) -> pa.ChunkedArray:
    return column.take(pa.array(positions, mask=positions < 0))
