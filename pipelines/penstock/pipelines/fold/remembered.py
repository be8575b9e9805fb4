"""What is kept of the keys of a vectorised function: its state in columns, and the timers that wait."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.keyed import KeysInHand
from penstock.pipelines.fold.returned import IS_KNOWN, MEMORY, WAITING, remembered_fields
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.state.columns import (
    BEFORE_ALL,
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    Ints,
    Mask,
)
from penstock.pipelines.vectorised import KEY, KNOWN, TIMERS


@dataclass(frozen=True)
class Held:
    """What is known of keys in hand, before their calls and after them: a value, made anew by each change."""

    states: pa.Table
    timers: pa.Table
    newest: Ints

    @property
    def key_of_timer(self) -> Ints:
        """The key of each timer."""
        return numpy_column(self.timers.column(KEY))

    @property
    def known(self) -> Mask:
        """Which keys have a state."""
        return numpy_column(self.states.column(KNOWN))

    def with_timers(self, chosen: Mask) -> "Held":
        """The same with some of the timers."""
        return replace(self, timers=self.timers.filter(pa.array(chosen)))

    def changed(self, keys: Ints, states: pa.Table, timers: pa.Table) -> "Held":
        """The same with other states of some keys, and other timers."""
        place = np.arange(self.states.num_rows)
        place[keys] = self.states.num_rows + np.arange(len(keys))
        both = pa.concat_tables([self.states, states])
        return Held(both.take(pa.array(place)), timers, self.newest)


def held_by(window: Remembering, hand: KeysInHand) -> Held:
    """What the state has of the keys in hand; new ones have nothing."""
    row = np.full(len(hand), -1, np.int64)
    row[hand.key_of_known] = np.arange(hand.known.num_rows)
    place = pa.array(row, mask=row < 0)
    known = pc.fill_null(hand.known.column(IS_KNOWN).take(place), fill_value=False)
    fields = remembered_fields(window)
    columns = [hand.known.column(f"{MEMORY}{field.name}").take(place) for field in fields]
    states = pa.table([known, *columns], schema=pa.schema([pa.field(KNOWN, pa.bool_()), *fields]))
    newest = np.full(len(hand), BEFORE_ALL, np.int64)
    newest[hand.key_of_known] = numpy_column(hand.known.column("newest"))
    waiting = hand.known.column("timers").combine_chunks()
    told = pc.list_flatten(waiting)
    key = hand.key_of_known[numpy_column(pa.chunked_array([pc.list_parent_indices(waiting)]))]
    parts = [told.field(name) for name in TIMERS.names[1:]]
    return Held(states, pa.table([pa.array(key), *parts], schema=TIMERS), newest)


def dropped_keys(held: Held, gone: Mask) -> Held:
    """The same without what is known of some keys."""
    if not gone.any():
        return held
    empty = [
        pc.if_else(pa.array(gone), pa.scalar(None, f.type), held.states.column(f.name))
        for f in held.states.schema
    ]
    known = pa.array(held.known & ~gone)
    states = pa.table([known, *empty[1:]], schema=held.states.schema)
    return replace(held, states=states).with_timers(~gone[held.key_of_timer])


def kept_of(stage: ReadyStage, hand: KeysInHand, held: Held, due_event: Ints, due_clock: Ints) -> pa.Table:
    """The rows of the state after a batch."""
    timers = held.timers.sort_by([(name, "ascending") for name in TIMERS.names])
    counts = np.bincount(numpy_column(timers.column(KEY)), minlength=len(hand))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    each = pa.StructArray.from_arrays(
        [timers.column(name).combine_chunks() for name in TIMERS.names[1:]], fields=list(WAITING.value_type)
    )
    columns = {
        GROUP_HI: pa.array(hand.groups.hi),
        GROUP_LO: pa.array(hand.groups.lo),
        DUE_EVENT: pa.array(due_event),
        DUE_CLOCK: pa.array(due_clock),
        DROPPED: pa.array(~held.known & (counts == 0)),
        **{name: hand.names.column(name) for name in hand.names.column_names},
        IS_KNOWN: held.states.column(KNOWN),
        **{f"{MEMORY}{name}": held.states.column(name) for name in held.states.column_names[1:]},
        "timers": pa.ListArray.from_arrays(pa.array(ends), each, type=WAITING),
        "newest": pa.array(held.newest),
    }
    names = [*columns]
    assert names[5:] == stage.state_columns.names, "the state's columns have one order"
    return pa.table([*columns.values()], names=names)
