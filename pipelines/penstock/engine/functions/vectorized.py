"""Arguments and results of vectorized stateful functions, which process all keys of a batch in one call over Arrow.

    def totals(batch: KeyBatchContext) -> KeyBatchUpdate:
        sums = batch.records.group_by("_key").aggregate([("amount", "sum")])
        ...
        return KeyBatchUpdate(states, rows)

It is the same as `penstock.engine.functions.stateful`, for all keys that have records or a due timer. Keys are
numbered from 0 in each call; the numbers have no meaning between calls. The result for a key must depend on that
key only, because the other keys of a call differ between batches and between the driver and the executors.
"""

from dataclasses import dataclass

import pyarrow as pa

KEY_INDEX_COLUMN = "_key"
"""The number of the key of a row."""
RECORD_TIME_COLUMN = "_time"
HAS_STATE_COLUMN = "_known"
"""Whether the key has a state."""
ROW_TIME_COLUMN = "_at"
ROW_OUTPUT_COLUMN = "_to"

TIMER_SCHEMA = pa.schema(
    [
        pa.field(KEY_INDEX_COLUMN, pa.int64()),
        pa.field("at", pa.int64()),
        pa.field("clock", pa.string()),
        pa.field("name", pa.string()),
    ]
)
"""Timers: the number of the key, the time in milliseconds, the clock (`event` or `processing`) and the name."""


@dataclass(frozen=True)
class KeyBatchContext:
    """The input of a call: all keys of a batch, with their states, records and timers.

    `keys` has a row for each key, with the key columns (a stage without a key has no columns and no row). `states`
    has a row for each key in the same order, with the fields of the declared state and `_known`, which is false,
    with null fields, for a key without a state. `records` has the records grouped by key, in arrival order: `_key`,
    `_time` (event time in milliseconds) and the fields after the steps of the stage. `due_timers` are deleted
    unless the result sets them again. `pending_timers` are all other timers of these keys.
    """

    keys: pa.Table
    states: pa.Table
    records: pa.Table
    due_timers: pa.Table
    pending_timers: pa.Table
    watermark: int
    batch_clock: int


@dataclass(frozen=True)
class KeyBatchUpdate:
    """The result of a call: new states, rows and timers.

    `states` has a row for each key, in the order of `keys`; where the optional column `_known` is false, the state
    is deleted. `rows` has `_key`, the result columns (a missing one is null) and optionally `_at`, the event time
    of a row (default: that of the newest record or timer of its key), and `_to`, its side output (null for the main
    output). `timers` replaces all pending timers of the keys; None keeps them.
    """

    states: pa.Table
    rows: pa.Table | None = None
    timers: pa.Table | None = None
