"""Vectorized stateful functions: one call for all keys that have records or due timers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import to_numpy
from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.vectorized import (
    KEY_INDEX_COLUMN,
    RECORD_TIME_COLUMN,
    KeyBatchContext,
    KeyBatchUpdate,
)
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.keyed_batch import KeyedBatch, load_keyed_batch, make_stage_result
from penstock.engine.operators.stateful.side_outputs import null_other_columns, route_table
from penstock.engine.operators.stateful.vectorized_state import (
    VectorizedState,
    drop_states,
    load_states,
    make_vectorized_state_rows,
)
from penstock.engine.operators.stateful.vectorized_validation import (
    check_rows,
    check_states,
    check_timers,
    require_table,
)
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.state.state_tree import StateTree
from penstock.engine.user_tracebacks import wrap_user_error

MAX_TIMER_ROUNDS = 1_000
"""The number of times per batch that timers may be set that are due immediately. More counts as an endless
loop.
"""


def process_vectorized(
    stage: CompiledStage, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Call the function for all keys of the batch, and store their states."""
    window = stage.plan.window
    assert isinstance(window, StatefulFunction)
    keyed_batch = load_keyed_batch(stage, state, elements, batch_time)
    caller = VectorizedCaller(stage, window, keyed_batch, batch_time, [])
    key_states = caller.process_keys(load_states(window, keyed_batch))
    changed_state = make_vectorized_state_rows(
        stage, keyed_batch, key_states, caller.next_event_due(key_states), caller.next_clock_due(key_states)
    )
    return make_stage_result(stage, keyed_batch, changed_state, caller.collect_rows(), batch_time)


@dataclass(frozen=True)
class CallRows:
    """Rows of one call: the key and the event time of each, and the result columns."""

    key: Int64Array
    times: Int64Array
    values: pa.Table


@dataclass(frozen=True)
class VectorizedCaller:
    """Calls the function at one batch time, as often as needed, and collects its rows."""

    stage: CompiledStage
    window: StatefulFunction
    keyed_batch: KeyedBatch
    batch_time: BatchTime
    call_rows: list[CallRows]

    def process_keys(self, key_states: VectorizedState) -> VectorizedState:
        """Call for records and due timers. A record after its key's expiry finds no state."""
        part_of_record = self.count_expiries(key_states)
        last_part = np.zeros(len(self.keyed_batch), np.int64)
        np.maximum.at(last_part, self.keyed_batch.key_of_record, part_of_record)
        has_no_records = np.bincount(self.keyed_batch.key_of_record, minlength=len(self.keyed_batch)) == 0
        for part in range(int(last_part.max(initial=0)) + 1):
            is_chosen = part_of_record == part
            has_records = (
                np.bincount(self.keyed_batch.key_of_record[is_chosen], minlength=len(self.keyed_batch)) > 0
            )
            if part:
                key_states = self.expire_before_records(key_states, has_records)
            key_states = self.advance_newest(key_states, is_chosen)
            is_callable = has_records | has_no_records if part == 0 else has_records
            key_states = self.call_until_settled(
                key_states, is_callable, is_chosen, self.batch_time.watermark, last_part == part
            )
        return self.expire_states(key_states, np.ones(len(self.keyed_batch), bool))

    def count_expiries(self, key_states: VectorizedState) -> Int64Array:
        """Return, for each record, how often its key expired before it in this batch."""
        key, ttl = self.keyed_batch.key_of_record, self.window.forget_after
        if ttl is None or not len(key):
            return np.zeros(len(key), np.int64)
        times = to_numpy(self.keyed_batch.records.column(RECORD_TIME_COLUMN))
        newest_before = np.maximum(max_time_before(key, times), key_states.newest_times[key])
        is_expired = (newest_before != MIN_TIMESTAMP_MS) & (times - ttl >= newest_before)
        first_of_key = np.searchsorted(key, key)
        expiry_counts = np.append(0, np.cumsum(is_expired))
        return np.asarray(expiry_counts[1:] - expiry_counts[first_of_key], np.int64)

    def expire_before_records(self, key_states: VectorizedState, is_expiring: BoolArray) -> VectorizedState:
        """Call for the remaining timers of keys that expire before their next record, then drop their states."""
        key_states = self.call_until_settled(
            key_states,
            is_expiring,
            np.zeros(len(self.keyed_batch.key_of_record), bool),
            MAX_TIMESTAMP_MS,
            ~is_expiring,
        )
        newest = np.where(is_expiring, MIN_TIMESTAMP_MS, key_states.newest_times)
        return drop_states(replace(key_states, newest_times=newest), is_expiring)

    def advance_newest(self, key_states: VectorizedState, is_chosen: BoolArray) -> VectorizedState:
        """Return the states with the newest event time advanced by the selected records."""
        newest = key_states.newest_times.copy()
        times = to_numpy(self.keyed_batch.records.column(RECORD_TIME_COLUMN))
        np.maximum.at(newest, self.keyed_batch.key_of_record[is_chosen], times[is_chosen])
        return replace(key_states, newest_times=newest)

    def call_until_settled(
        self,
        key_states: VectorizedState,
        is_callable: BoolArray,
        is_chosen: BoolArray,
        until: int,
        is_last_part: BoolArray,
    ) -> VectorizedState:
        """Call until no key has a timer that is due immediately. Timers after a key's expiry do not fire."""
        has_records = (
            np.bincount(self.keyed_batch.key_of_record[is_chosen], minlength=len(self.keyed_batch)) > 0
        )
        timer_limits = np.minimum(until, self.expires_at(key_states))
        records = self.records if is_chosen.all() else self.records.filter(pa.array(is_chosen))
        for _ in range(MAX_TIMER_ROUNDS):
            is_called = is_callable & (has_records | self.have_due_timers(key_states, timer_limits))
            if not is_called.any():
                return key_states
            key_states = self.call_once(key_states, np.flatnonzero(is_called), records, timer_limits)
            if self.batch_time.watermark == MAX_TIMESTAMP_MS:
                # After the end of input, drop timers set in a call without records: they might never end.
                is_finished = is_called & ~has_records & is_last_part
                key_states = key_states.filter_timers(
                    ~(
                        self.are_timers_due(key_states.timers, timer_limits[key_states.key_of_timer])
                        & is_finished[key_states.key_of_timer]
                    )
                )
            has_records, records = np.zeros(len(self.keyed_batch), bool), records.slice(0, 0)
        key_row = self.keyed_batch.key_table.slice(
            int(np.flatnonzero(is_callable & self.have_due_timers(key_states, timer_limits))[0]), 1
        ).to_pylist()[0]
        key_values = tuple(key_row[key_field.name] for key_field in self.stage.key)
        message = (
            f"key {key_values} set timers that were due immediately {MAX_TIMER_ROUNDS} times in one batch"
        )
        raise StatefulFunctionError(self.window.function.name, message)

    def call_once(
        self,
        key_states: VectorizedState,
        called_keys: Int64Array,
        records: pa.Table,
        timer_limits: Int64Array,
    ) -> VectorizedState:
        """Call the function once for some keys.

        `timer_limits` has the time up to which each key's timers are due.
        """
        call_position = np.full(len(self.keyed_batch), -1, np.int64)
        call_position[called_keys] = np.arange(len(called_keys))
        is_due = self.are_timers_due(key_states.timers, timer_limits[key_states.key_of_timer])
        is_called = call_position[key_states.key_of_timer] >= 0
        timers, waiting = (
            _renumber_keys(key_states.timers.filter(pa.array(timer_mask & is_called)), call_position)
            for timer_mask in (is_due, ~is_due)
        )
        calls = KeyBatchContext(
            keys=self.keyed_batch.key_table.select([key_field.name for key_field in self.stage.key]).take(
                pa.array(called_keys)
            ),
            states=key_states.states.take(pa.array(called_keys)),
            records=_renumber_keys(records, call_position),
            due_timers=timers,
            pending_timers=waiting,
            watermark=self.batch_time.watermark,
            batch_clock=self.batch_time.clock,
        )
        updates, name = self.call_function(calls), self.window.function.name
        states = check_states(updates, key_states.states.schema, len(called_keys), name)
        if updates.rows is not None:
            self.call_rows.append(self.make_call_rows(updates.rows, key_states, called_keys, timers))
        next_timers = waiting
        if updates.timers is not None:
            next_timers = check_timers(updates.timers, len(called_keys), name, allows_clock=self.window.clock)
        other_timers = key_states.timers.filter(pa.array(~is_called))
        return key_states.update_keys(
            called_keys, states, pa.concat_tables([other_timers, _renumber_keys(next_timers, called_keys)])
        )

    def make_call_rows(
        self, rows: pa.Table, key_states: VectorizedState, called_keys: Int64Array, timers: pa.Table
    ) -> CallRows:
        """Return the rows with their event times: their own, or that of the key's newest record or timer."""
        columns = {accumulator.output: accumulator.type for accumulator in self.stage.accumulators}
        rows = route_table(self.window, require_table(rows, "rows", self.window.function.name))
        row_key, row_times, values = check_rows(rows, columns, len(called_keys), self.window.function.name)
        values = null_other_columns(self.window, values)
        newest = key_states.newest_times[called_keys].copy()
        by_event = timers.filter(pc.equal(timers.column("clock"), "event"))
        np.maximum.at(newest, to_numpy(by_event.column(KEY_INDEX_COLUMN)), to_numpy(by_event.column("at")))
        times = (
            newest[row_key]
            if row_times is None
            else to_numpy(pc.coalesce(row_times, pa.array(newest[row_key])))
        )
        return CallRows(called_keys[row_key], times, values)

    def call_function(self, calls: KeyBatchContext) -> KeyBatchUpdate:
        """Call the function.

        Raises StatefulFunctionError for an invalid result and UserCodeError if the function fails.
        """
        try:
            updates = self._function(calls)
        except Exception as error:
            raise wrap_user_error(f"stateful {self.window.function.name}", error) from error
        if not isinstance(updates, KeyBatchUpdate):
            raise StatefulFunctionError(
                self.window.function.name,
                f"it returned {type(updates).__name__}, not a penstock.engine.functions.vectorized.KeyBatchUpdate",
            )
        return updates

    @cached_property
    def _function(self) -> Any:
        return self.window.function.resolve()

    @cached_property
    def records(self) -> pa.Table:
        """The records as the function receives them, with the index of their key."""
        names = [RECORD_TIME_COLUMN, *(field.name for field in (*self.stage.key, *self.stage.record_fields))]
        return self.keyed_batch.records.select(names).add_column(
            0, KEY_INDEX_COLUMN, pa.array(self.keyed_batch.key_of_record)
        )

    def are_timers_due(self, timers: pa.Table, until: Int64Array) -> BoolArray:
        """Return which timers are due. `until` is the limit of each event-time timer."""
        by_event = np.asarray(pc.equal(timers.column("clock"), "event"))
        return to_numpy(timers.column("at")) <= np.where(by_event, until, self.batch_time.clock)

    def have_due_timers(self, key_states: VectorizedState, timer_limits: Int64Array) -> BoolArray:
        """Return which keys have due timers."""
        is_due = self.are_timers_due(key_states.timers, timer_limits[key_states.key_of_timer])
        return np.bincount(key_states.key_of_timer[is_due], minlength=len(self.keyed_batch)) > 0

    def expire_states(self, key_states: VectorizedState, is_candidate: BoolArray) -> VectorizedState:
        """Drop the states of candidate keys that have expired."""
        expiry = self.expires_at(key_states)
        return drop_states(
            key_states, is_candidate & (expiry != MAX_TIMESTAMP_MS) & (expiry <= self.batch_time.watermark)
        )

    def expires_at(self, key_states: VectorizedState) -> Int64Array:
        """Return the watermark at which each key expires."""
        ttl = self.window.forget_after
        if ttl is None:
            return np.full(len(self.keyed_batch), MAX_TIMESTAMP_MS, np.int64)
        has_time = key_states.newest_times != MIN_TIMESTAMP_MS
        return np.where(has_time, np.where(has_time, key_states.newest_times, 0) + ttl, MAX_TIMESTAMP_MS)

    def next_event_due(self, key_states: VectorizedState) -> Int64Array:
        """Return the watermark at which each key is due again."""
        return self._earliest_due(key_states, "event", self.expires_at(key_states))

    def next_clock_due(self, key_states: VectorizedState) -> Int64Array:
        """Return the clock at which each key is due again."""
        return self._earliest_due(
            key_states, "processing", np.full(len(self.keyed_batch), MAX_TIMESTAMP_MS, np.int64)
        )

    def _earliest_due(self, key_states: VectorizedState, clock: str, due_times: Int64Array) -> Int64Array:
        is_of_clock = np.asarray(pc.equal(key_states.timers.column("clock"), clock))
        np.minimum.at(
            due_times,
            key_states.key_of_timer[is_of_clock],
            to_numpy(key_states.timers.column("at"))[is_of_clock],
        )
        return due_times

    def collect_rows(self) -> tuple[Int64Array, Int64Array, dict[str, pa.Array]]:
        """Return the rows of all calls: key, event time, and columns."""
        no_keys = np.empty(0, np.int64)
        schema = pa.schema([pa.field(each.output, each.type) for each in self.stage.accumulators])
        values = pa.concat_tables([schema.empty_table(), *(call_rows.values for call_rows in self.call_rows)])
        key, times = (np.concatenate([no_keys, *each]) for each in _split_columns(self.call_rows))
        return key, times, {name: values.column(name) for name in schema.names}


def max_time_before(key: Int64Array, times: Int64Array) -> Int64Array:
    """Return, for each record, the highest time of its key before it. Records are sorted by key."""
    distinct_times, rank = np.unique(times, return_inverse=True)
    # Ranks of a key are higher than those of all keys before it, so the running maximum never crosses keys.
    highest_rank = np.maximum.accumulate(key * len(distinct_times) + rank) % len(distinct_times)
    time_before = np.append(MIN_TIMESTAMP_MS, distinct_times[highest_rank[:-1]])
    return np.where(np.append(True, key[1:] != key[:-1]), MIN_TIMESTAMP_MS, time_before)


def _split_columns(all_call_rows: Sequence[CallRows]) -> tuple[list[Int64Array], list[Int64Array]]:
    return [call_rows.key for call_rows in all_call_rows], [call_rows.times for call_rows in all_call_rows]


def _renumber_keys(table: pa.Table, new_numbers: Int64Array) -> pa.Table:
    """Return the rows with their key indexes mapped."""
    keys = new_numbers[to_numpy(table.column(KEY_INDEX_COLUMN))]
    return table.set_column(table.schema.get_field_index(KEY_INDEX_COLUMN), KEY_INDEX_COLUMN, pa.array(keys))
