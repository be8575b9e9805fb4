"""Per-key state of a stateful function: loaded before the calls, stored after them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from penstock.engine.columnar import Rows, to_numpy
from penstock.engine.functions.stateful import Timer
from penstock.engine.operators.keyed_batch import KeyedBatch
from penstock.engine.operators.stateful.per_key_validation import UpdateValidator
from penstock.engine.operators.stateful.state_encoding import encode_state
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS, BoolArray, Int64Array

ENCODED_NO_TIMERS = encode_state(())


@dataclass
class KeyState:
    """State, timers and output rows of a key, before and after its calls."""

    state: Any = None
    timers: tuple[Timer, ...] = ()
    newest_time: int = MIN_TIMESTAMP_MS
    row_times: list[int] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)


def read_key_states(window: StatefulFunction, keyed_batch: KeyedBatch) -> Iterator[KeyState]:
    """Yield the stored state of each key. A new key has an empty state."""
    row_of_key = np.full(len(keyed_batch), -1, np.int64)
    row_of_key[keyed_batch.key_of_stored] = np.arange(keyed_batch.stored.num_rows)
    encoded_states, encoded_timers = (
        keyed_batch.stored.column(name).to_pylist() for name in ("function_state", "timers")
    )
    newest_times = to_numpy(keyed_batch.stored.column("newest_time")).tolist()
    state_decoder = msgspec.msgpack.Decoder(window.state.resolve())
    timer_decoder = msgspec.msgpack.Decoder(tuple[Timer, ...])
    for row_number in row_of_key.tolist():
        if row_number < 0:
            yield KeyState()
            continue
        state = (
            None if encoded_states[row_number] is None else state_decoder.decode(encoded_states[row_number])
        )
        yield KeyState(
            state,
            ()
            if encoded_timers[row_number] == ENCODED_NO_TIMERS
            else timer_decoder.decode(encoded_timers[row_number]),
            newest_times[row_number],
        )


@dataclass
class KeyStateColumns:
    """The results of all keys, column by column.

    No per-key object outlives its call. With many keys, repeated garbage collection over them took a third of
    the time.
    """

    validator: UpdateValidator
    encoded_states: list[bytes | None] = field(default_factory=list)
    encoded_timers: list[bytes] = field(default_factory=list)
    newest_times: list[int] = field(default_factory=list)
    event_due_times: list[int] = field(default_factory=list)
    clock_due_times: list[int] = field(default_factory=list)
    dropped_flags: list[bool] = field(default_factory=list)
    row_counts: list[int] = field(default_factory=list)
    row_times: list[int] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, key_state: KeyState, event_due: int, clock_due: int) -> None:
        """Add a key after its calls. It is due again at `event_due` and at `clock_due`."""
        self.encoded_states.append(self.validator.encode_state(key_state.state))
        self.encoded_timers.append(encode_state(key_state.timers) if key_state.timers else ENCODED_NO_TIMERS)
        self.newest_times.append(key_state.newest_time)
        self.event_due_times.append(event_due)
        self.clock_due_times.append(clock_due)
        self.dropped_flags.append(key_state.state is None and not key_state.timers)
        self.row_counts.append(len(key_state.rows))
        self.row_times += key_state.row_times
        self.rows += key_state.rows

    @property
    def due_times(self) -> tuple[Int64Array, Int64Array]:
        """The watermark and the clock at which each key is due again."""
        return np.array(self.event_due_times, np.int64), np.array(self.clock_due_times, np.int64)

    @property
    def is_dropped(self) -> BoolArray:
        """The keys that have neither state nor timers left."""
        return np.array(self.dropped_flags, bool)

    def to_rows(self) -> Rows:
        """Return the columns to store."""
        count = len(self.encoded_states)
        columns: Mapping[str, list[Any]] = {
            "function_state": self.encoded_states,
            "timers": self.encoded_timers,
        }
        object_columns = {
            name: np.fromiter(values, dtype=object, count=count) for name, values in columns.items()
        }
        return Rows({**object_columns, "newest_time": np.array(self.newest_times, np.int64)}, count)
