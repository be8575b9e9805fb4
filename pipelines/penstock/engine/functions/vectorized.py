"""What a function with a memory is given and what it answers when it takes all keys of a batch at once, in Arrow.

    def totals(calls: KeyBatchContext) -> KeyBatchUpdate:
        came = calls.records.group_by("_key").aggregate([("amount", "sum")])
        ...
        return KeyBatchUpdate(states, rows)

It is `penstock.engine.functions.stateful`, for many keys in one call: the keys that have records or a due timer,
and no others. Keys are numbered from 0 in each call; a number says nothing beyond it. What is said of one key must
depend on that key alone: which others stand beside it differs from batch to batch, and with where the batch is
folded.
"""

from dataclasses import dataclass

import pyarrow as pa

KEY_INDEX_COLUMN = "_key"
"""The number of a row's key."""
RECORD_TIME_COLUMN = "_time"
HAS_STATE_COLUMN = "_known"
"""Whether a key has a state."""
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
"""Timers: the key of each, its moment in milliseconds, `event` or `processing`, and its name."""


@dataclass(frozen=True)
class KeyBatchContext:
    """All that a function may know, of all keys that it is asked about.

    `keys` has a row for each key, with the columns of the key (none of a stage without a key, and then no row);
    `states` a row for each key in the same order, with the fields of the declared state, and `_known`: false, with
    nulls beside it, for a key without a state.
    `records` are the records of all keys, those of a key together and in the order of their arrival: `_key`,
    `_time` (event time, milliseconds) and the fields after the stage's steps. `due_timers` are gone,
    unless the answer sets them again. `pending_timers` are the others of these keys.
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
    """What becomes of the keys: their states from now on, rows, and timers.

    `states` has a row for each key, in the order of `keys`; where it has a column `_known` that is false, the key
    is forgotten. `rows` has `_key`, the columns of the result (null where one is missing), and maybe `_at`: the
    event time of a row, without which it has that of the newest record or timer of its key; and maybe `_to`: the
    output that a row goes to, null for the function's own. Without `timers` those that wait go on waiting; with
    them, these stand in their place, for all keys that were asked about.
    """

    states: pa.Table
    rows: pa.Table | None = None
    timers: pa.Table | None = None
