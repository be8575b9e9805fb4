"""The fold of a function that is told records in order of event time, with timers where they lie between them.

A record waits in the state until the watermark has passed it: then nobody who is in time comes before it. So what
the function is told follows from the records that were in time, however batches were cut.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.given import Given
from penstock.pipelines.fold.keyed import KeysInHand, keys_in_hand, said
from penstock.pipelines.fold.known import Settled, opened
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.hand import addresses
from penstock.pipelines.fold.reads import keys_of, reads_of
from penstock.pipelines.fold.remembering import row_columns
from penstock.pipelines.fold.returned import PLACE, RECORDS, REMEMBERED
from penstock.pipelines.fold.rows import arrow, numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.telling import Telling
from penstock.pipelines.fold.touched import Outcome, missed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.state.columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    NEVER,
    Ints,
    Mask,
)
from penstock.pipelines.state.tree import Tree


def fold_in_time(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Tell the records that the watermark has passed, and the timers between them, and keep what is to come."""
    window = stage.plan.window
    assert isinstance(window, Remembering)
    late = numpy_column(elements.column("_time")) < moment.watermark_before
    in_time = elements.filter(pa.array(~late))
    hand = keys_in_hand(stage, state, in_time, moment, [field.name for field in PLACE])
    records = _records(stage, hand)
    passed = records.time < moment.watermark
    told, to_come = records.where(passed), records.where(~passed)
    hand = replace(hand, records=told.rows, key_of_record=told.key)
    given = Given(window)
    telling, settled = Telling(window, moment, given), Settled(given)
    for key, one, reads in zip(
        keys_of(stage, hand), opened(window, hand), reads_of(stage, hand), strict=True
    ):
        telling.settle(key, one, reads)
        settled.add(one, telling.next_event(one), NEVER)
    key_of_row = np.repeat(np.arange(len(hand)), settled.counts)
    rows = (key_of_row, given.instants(settled.times), row_columns(stage, given, settled.rows))
    outcome = said(stage, hand, _changed(stage, hand, settled, to_come), rows, moment)
    return replace(outcome, late=late, missed=_refused(stage, elements, late))


@dataclass(frozen=True)
class Records:
    """Records in the order in which they are told: by key, time and address."""

    key: Ints
    time: Ints
    rows: pa.Table

    def where(self, chosen: Mask) -> "Records":
        """Some of them."""
        return Records(self.key[chosen], self.time[chosen], self.rows.filter(pa.array(chosen)))


def _records(stage: ReadyStage, hand: KeysInHand) -> Records:
    """What waits of the keys in hand, and what came."""
    names = [field.name for field in (*PLACE, *stage.fields)]
    waiting = hand.known.column(RECORDS).combine_chunks()
    parent = numpy_column(pa.chunked_array([pc.list_parent_indices(waiting)]))
    held = pa.Table.from_struct_array(pc.list_flatten(waiting))
    came = hand.records.select(names).cast(held.schema)
    rows = pa.concat_tables([held, came]).combine_chunks()
    key = np.append(hand.key_of_known[parent], hand.key_of_record)
    time = numpy_column(rows.column("_time"))
    order = np.lexsort((*addresses(rows), time, key))
    return Records(key[order], time[order], rows.take(pa.array(order)))


def _changed(stage: ReadyStage, hand: KeysInHand, settled: Settled, to_come: Records) -> pa.Table:
    """The rows of the state: a key is called again when the watermark has passed the first record that waits."""
    counts = np.bincount(to_come.key, minlength=len(hand))
    ends = np.append(0, np.cumsum(counts))
    first = np.full(len(hand), NEVER)
    waits = counts > 0
    first[waits] = to_come.time[ends[:-1][waits]] + 1
    rows = settled.kept()
    columns = {
        GROUP_HI: pa.array(hand.groups.hi),
        GROUP_LO: pa.array(hand.groups.lo),
        DUE_EVENT: pa.array(np.minimum(settled.due[0], first)),
        DUE_CLOCK: pa.array(settled.due[1]),
        DROPPED: pa.array(settled.dropped & ~waits),
        **{name: hand.names.column(name) for name in hand.names.column_names},
        **{slot.name: arrow(rows[slot.name], slot.type) for slot in REMEMBERED},
        RECORDS: _lists(stage, to_come, ends),
    }
    return pa.table([*columns.values()], names=[*columns])


def _lists(stage: ReadyStage, to_come: Records, ends: Ints) -> pa.Array:
    """The records that wait, a list for each key."""
    fields = [*PLACE, *stage.fields]
    parts = [to_come.rows.column(field.name).combine_chunks() for field in fields]
    structs = pa.StructArray.from_arrays(parts, fields=fields)
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), structs)


def _refused(stage: ReadyStage, elements: pa.Table, late: Mask) -> pa.Table:
    """Who came behind the watermark."""
    refused = elements.filter(pa.array(late))
    time = numpy_column(refused.column("_time"))
    bounds = {"window_start": time, "window_end": time + 1}
    for name, at in bounds.items():
        refused = refused.append_column(name, pa.array(at))
    return missed(stage, refused, time, time + 1)
