"""State of a vectorized function's keys: state columns and pending timers."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.columnar import to_numpy
from penstock.engine.functions.vectorized import HAS_STATE_COLUMN, KEY_INDEX_COLUMN, TIMER_SCHEMA
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.keyed_batch import KeyedBatch
from penstock.engine.operators.stateful.schema import (
    STATE_COLUMN_PREFIX,
    STATE_PRESENT_COLUMN,
    WAITING_TIMERS_TYPE,
    list_state_fields,
)
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.header_columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    MIN_TIMESTAMP_MS,
    BoolArray,
    Int64Array,
)


@dataclass(frozen=True)
class VectorizedState:
    """States and timers of the batch's keys, before and after their calls. Immutable."""

    states: pa.Table
    timers: pa.Table
    newest_times: Int64Array

    @property
    def key_of_timer(self) -> Int64Array:
        """The key of each timer."""
        return to_numpy(self.timers.column(KEY_INDEX_COLUMN))

    @property
    def has_state(self) -> BoolArray:
        """Which keys have a state."""
        return to_numpy(self.states.column(HAS_STATE_COLUMN))

    def filter_timers(self, is_chosen: BoolArray) -> "VectorizedState":
        """Return the states with some of the timers."""
        return replace(self, timers=self.timers.filter(pa.array(is_chosen)))

    def update_keys(self, keys: Int64Array, states: pa.Table, timers: pa.Table) -> "VectorizedState":
        """Return the states with those of `keys` and all timers replaced."""
        row_of_key = np.arange(self.states.num_rows)
        row_of_key[keys] = self.states.num_rows + np.arange(len(keys))
        all_states = pa.concat_tables([self.states, states])
        return VectorizedState(all_states.take(pa.array(row_of_key)), timers, self.newest_times)


def load_states(window: StatefulFunction, keyed_batch: KeyedBatch) -> VectorizedState:
    """Load the states of the batch's keys. New keys have none."""
    row_of_key = np.full(len(keyed_batch), -1, np.int64)
    row_of_key[keyed_batch.key_of_stored] = np.arange(keyed_batch.stored.num_rows)
    row_numbers = pa.array(row_of_key, mask=row_of_key < 0)
    has_state = pc.fill_null(
        keyed_batch.stored.column(STATE_PRESENT_COLUMN).take(row_numbers), fill_value=False
    )
    fields = list_state_fields(window)
    columns = [
        keyed_batch.stored.column(f"{STATE_COLUMN_PREFIX}{field.name}").take(row_numbers) for field in fields
    ]
    states = pa.table(
        [has_state, *columns], schema=pa.schema([pa.field(HAS_STATE_COLUMN, pa.bool_()), *fields])
    )
    newest_times = np.full(len(keyed_batch), MIN_TIMESTAMP_MS, np.int64)
    newest_times[keyed_batch.key_of_stored] = to_numpy(keyed_batch.stored.column("newest_time"))
    waiting_timers = keyed_batch.stored.column("timers").combine_chunks()
    flat_timers = pc.list_flatten(waiting_timers)
    key_of_timer = keyed_batch.key_of_stored[
        to_numpy(pa.chunked_array([pc.list_parent_indices(waiting_timers)]))
    ]
    parts = [flat_timers.field(name) for name in TIMER_SCHEMA.names[1:]]
    return VectorizedState(
        states, pa.table([pa.array(key_of_timer), *parts], schema=TIMER_SCHEMA), newest_times
    )


def drop_states(key_states: VectorizedState, is_dropped: BoolArray) -> VectorizedState:
    """Drop the states and timers of some keys."""
    if not is_dropped.any():
        return key_states
    cleared_columns = [
        pc.if_else(pa.array(is_dropped), pa.scalar(None, field.type), key_states.states.column(field.name))
        for field in key_states.states.schema
    ]
    has_state = pa.array(key_states.has_state & ~is_dropped)
    states = pa.table([has_state, *cleared_columns[1:]], schema=key_states.states.schema)
    return replace(key_states, states=states).filter_timers(~is_dropped[key_states.key_of_timer])


def make_vectorized_state_rows(
    stage: CompiledStage,
    keyed_batch: KeyedBatch,
    key_states: VectorizedState,
    due_event: Int64Array,
    due_clock: Int64Array,
) -> pa.Table:
    """Build the state rows after a batch."""
    timers = key_states.timers.sort_by([(name, "ascending") for name in TIMER_SCHEMA.names])
    counts = np.bincount(to_numpy(timers.column(KEY_INDEX_COLUMN)), minlength=len(keyed_batch))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    timer_structs = pa.StructArray.from_arrays(
        [timers.column(name).combine_chunks() for name in TIMER_SCHEMA.names[1:]],
        fields=list(WAITING_TIMERS_TYPE.value_type),
    )
    columns = {
        GROUP_HI: pa.array(keyed_batch.groups.hi),
        GROUP_LO: pa.array(keyed_batch.groups.lo),
        DUE_EVENT: pa.array(due_event),
        DUE_CLOCK: pa.array(due_clock),
        DROPPED: pa.array(~key_states.has_state & (counts == 0)),
        **{name: keyed_batch.key_table.column(name) for name in keyed_batch.key_table.column_names},
        STATE_PRESENT_COLUMN: key_states.states.column(HAS_STATE_COLUMN),
        **{
            f"{STATE_COLUMN_PREFIX}{name}": key_states.states.column(name)
            for name in key_states.states.column_names[1:]
        },
        "timers": pa.ListArray.from_arrays(pa.array(ends), timer_structs, type=WAITING_TIMERS_TYPE),
        "newest_time": pa.array(key_states.newest_times),
    }
    names = [*columns]
    assert names[5:] == stage.state_schema.names, "state columns are out of order"
    return pa.table([*columns.values()], names=names)
