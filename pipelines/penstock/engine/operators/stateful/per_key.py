"""Stateful functions, called per key: only keys that have records or due timers are called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.stateful import KeyContext, KeyedRecord, KeyUpdate, Timer
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.keyed_batch import load_keyed_batch, make_stage_result
from penstock.engine.operators.stateful.key_records import iterate_key_records, list_keys
from penstock.engine.operators.stateful.key_state import KeyState, KeyStateColumns, read_key_states
from penstock.engine.operators.stateful.per_key_validation import UpdateValidator
from penstock.engine.operators.stateful.side_outputs import route_rows
from penstock.engine.operators.windowed.window_update import LoadedWindows, StageResult, make_state_rows
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.state.state_tree import StateTree
from penstock.engine.user_tracebacks import wrap_user_error

MAX_TIMER_ROUNDS = 1_000
"""The number of times per batch that a key may set a timer that is due immediately. More counts as an endless
loop.
"""

_EVENT_TIME = attrgetter("time")


def process_per_key(
    stage: CompiledStage, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Call the function for each key of the batch, and store its state."""
    window = stage.plan.window
    assert isinstance(window, StatefulFunction)
    keyed_batch = load_keyed_batch(stage, state, elements, batch_time)
    validator = UpdateValidator(window)
    caller, key_state_columns = KeyCaller(window, batch_time, validator), KeyStateColumns(validator)
    for key, key_state, key_records in zip(
        list_keys(stage, keyed_batch),
        read_key_states(window, keyed_batch),
        iterate_key_records(stage, keyed_batch),
        strict=True,
    ):
        caller.process_key(key, key_state, key_records)
        key_state_columns.add(key_state, caller.next_event_due(key_state), caller.next_clock_due(key_state))
    loaded = LoadedWindows(keyed_batch.groups, key_state_columns.to_rows(), keyed_batch.key_table)
    changed_state = make_state_rows(stage, loaded, *key_state_columns.due_times, key_state_columns.is_dropped)
    key_of_row = np.repeat(np.arange(len(keyed_batch)), key_state_columns.row_counts)
    rows = (
        key_of_row,
        validator.check_times(key_state_columns.row_times),
        make_row_columns(stage, validator, key_state_columns.rows),
    )
    return make_stage_result(stage, keyed_batch, changed_state, rows, batch_time)


@dataclass(frozen=True)
class KeyCaller:
    """Calls the function for single keys at one batch time."""

    window: StatefulFunction
    batch_time: BatchTime
    validator: UpdateValidator

    def process_key(self, key: tuple[Any, ...], key_state: KeyState, records: Sequence[KeyedRecord]) -> None:
        """Call for records and due timers. A record after the key's expiry finds no state."""
        parts = self.split_at_expiry(key_state.newest_time, records)
        for part_number, part in enumerate(parts, start=1):
            if part and self.expires_at(key_state) <= part[0].time:
                self.call_until_settled(key, key_state, (), MAX_TIMESTAMP_MS, is_last_part=False)
                key_state.state, key_state.timers, key_state.newest_time = None, (), MIN_TIMESTAMP_MS
            self.call_until_settled(
                key, key_state, part, self.batch_time.watermark, is_last_part=part_number == len(parts)
            )
        if self.is_expired(key_state):
            key_state.state, key_state.timers = None, ()

    def split_at_expiry(
        self, newest_time: int, records: Sequence[KeyedRecord]
    ) -> Sequence[Sequence[KeyedRecord]]:
        """Split the records of a key wherever the key expires between two of them."""
        ttl = self.window.forget_after
        if ttl is None or not records:
            return [records]
        cuts = []
        for record_number, record in enumerate(records):
            if record_number and record.time >= newest_time + ttl:
                cuts.append(record_number)
            newest_time = max(newest_time, record.time)
        return [records[begin:end] for begin, end in pairwise([0, *cuts, len(records)])]

    def call_until_settled(
        self,
        key: tuple[Any, ...],
        key_state: KeyState,
        records: Sequence[KeyedRecord],
        until: int,
        *,
        is_last_part: bool,
    ) -> None:
        """Call for records and due timers, and again for timers that are due immediately, until none is left.

        Event-time timers after the key's expiry do not fire. At the end of input, timers set in a call
        without records are dropped: a timer that sets itself again would never end.
        """
        if records:
            key_state.newest_time = max(key_state.newest_time, *map(_EVENT_TIME, records))
        until = min(until, self.expires_at(key_state))
        due, waiting = self.split_timers(key_state.timers, until)
        for _ in range(MAX_TIMER_ROUNDS):
            if not records and not due:
                break
            call_times = (self.batch_time.watermark, self.batch_time.clock)
            update = self.call_function(KeyContext(key, key_state.state, records, due, waiting, *call_times))
            key_state.state = update.state
            next_timers = waiting if update.timers is None else tuple(sorted(update.timers))
            self.collect_rows(key_state, update, due)
            is_finished = self.batch_time.watermark == MAX_TIMESTAMP_MS and is_last_part and not records
            due, waiting = self.split_timers(next_timers, until)
            records = ()
            if is_finished:
                due = ()
        else:
            message = f"key {key} set timers that were due immediately {MAX_TIMER_ROUNDS} times in one batch"
            raise StatefulFunctionError(self.window.function.name, message)
        key_state.timers = waiting

    def collect_rows(self, key_state: KeyState, update: KeyUpdate[Any], due: Sequence[Timer]) -> None:
        """Collect the rows of an update. A row without an event time gets that of the newest record or timer."""
        if update.rows:
            self.validator.check_rows(update.rows)
            newest_time = max([key_state.newest_time, *(timer.at for timer in due if timer.clock == "event")])
            key_state.row_times += [newest_time if row.at is None else row.at for row in update.rows]
            key_state.rows += route_rows(self.window, update.rows)

    def call_function(self, call: KeyContext[Any]) -> KeyUpdate[Any]:
        """Call the function.

        Raises StatefulFunctionError for an invalid result and UserCodeError if the function fails.
        """
        try:
            returned = self._function(call)
        except Exception as error:
            raise wrap_user_error(f"stateful {self.window.function.name}", error) from error
        return self.validator.check_update(returned, call.key)

    @cached_property
    def _function(self) -> Any:
        return self.window.function.resolve()

    def split_timers(
        self, timers: tuple[Timer, ...], until: int
    ) -> tuple[tuple[Timer, ...], tuple[Timer, ...]]:
        """Split timers into due and waiting. Event-time timers are due up to `until`."""
        if not timers:
            return (), ()
        due_limits = {"event": until, "processing": self.batch_time.clock}
        due = tuple(timer for timer in timers if timer.at <= due_limits[timer.clock])
        return due, tuple(timer for timer in timers if timer.at > due_limits[timer.clock])

    def is_expired(self, key_state: KeyState) -> bool:
        """Return whether a key has expired because no record arrived within its time to live."""
        expiry = self.expires_at(key_state)
        return expiry != MAX_TIMESTAMP_MS and expiry <= self.batch_time.watermark

    def expires_at(self, key_state: KeyState) -> int:
        """Return the watermark at which a key expires."""
        ttl = self.window.forget_after
        return (
            MAX_TIMESTAMP_MS
            if ttl is None or key_state.newest_time == MIN_TIMESTAMP_MS
            else key_state.newest_time + ttl
        )

    def next_event_due(self, key_state: KeyState) -> int:
        """Return the watermark at which a key is due again."""
        if not key_state.timers:
            return self.expires_at(key_state)
        return min(
            [self.expires_at(key_state), *(timer.at for timer in key_state.timers if timer.clock == "event")]
        )

    def next_clock_due(self, key_state: KeyState) -> int:
        """Return the clock at which a key is due again."""
        if not key_state.timers:
            return MAX_TIMESTAMP_MS
        return min(
            [MAX_TIMESTAMP_MS, *(timer.at for timer in key_state.timers if timer.clock == "processing")]
        )


def make_row_columns(
    stage: CompiledStage, validator: UpdateValidator, rows: Sequence[Mapping[str, Any]]
) -> dict[str, pa.Array]:
    """Return the columns of the output rows, key by key."""
    validator.refuse_unknown_fields()
    return {
        accumulator.output: validator.make_column(accumulator.output, accumulator.type, rows)
        for accumulator in stage.accumulators
    }
