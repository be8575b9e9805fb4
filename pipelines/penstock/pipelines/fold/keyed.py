"""The keys that functions with a memory are asked about, and the rows that they give: the same for all of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.identity import different_keys
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.hand import addresses
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome, due_groups, missed, named, position_in, together
from penstock.pipelines.state.columns import Ints, Mask
from penstock.pipelines.state.run import Groups
from penstock.pipelines.state.tree import Tree

TOPIC = "_topic"
NOT_TOLD = (TOPIC, "_partition", "_offset", "_set_aside", "_counted", "_newest")
"""What is known of records and a fold of functions or joins leaves out once they are in order, unless it asks."""


@dataclass(frozen=True)
class KeysInHand:
    """Keys with records or with something due: who they are, what is kept of them, and what came."""

    groups: Groups
    names: pa.Table
    known: pa.Table
    key_of_known: Ints
    records: pa.Table
    """Key by key, in the order of arrival."""
    key_of_record: Ints

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self.groups)


def keys_in_hand(
    stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment, told: Collection[str] = ()
) -> KeysInHand:
    """Find the keys of a batch. `told` is what is asked for of their records, of what else is left out."""
    came, which = different_keys([elements.column(one.name) for one in stage.key], elements.num_rows)
    groups = together(came, due_groups(state, moment))
    known, key_of_known = state.lookup(groups)
    key_of_record = position_in(groups, came)[which]
    names = _names(stage, known, key_of_known, elements, key_of_record, len(groups))
    order = key_by_key(elements, key_of_record)
    chosen = [name for name in elements.column_names if name not in NOT_TOLD or name in told]
    records = elements.select(chosen).combine_chunks().take(pa.array(order))
    return KeysInHand(groups, names, known, key_of_known, records, key_of_record[order])


def key_by_key(elements: pa.Table, key: Ints) -> Ints:
    """The rows of a batch's records key by key, those of a key in the order of their arrival."""
    offset, partition, topic = addresses(elements)
    if not rising(topic, rising(partition, offset[1:] >= offset[:-1])).all():
        return np.lexsort((offset, partition, topic, key))
    # As a rule they come as they lie in the topic. Numbers of 16 bits numpy sorts by counting, ten times as fast.
    few = key.max(initial=0) < 2**16
    return np.argsort(key.astype(np.uint16) if few else key, kind="stable")


def rising(values: Ints, otherwise: Mask) -> Mask:
    """Whether each value is greater than the one before it; of equals, what is said `otherwise`."""
    found: Mask = (values[1:] > values[:-1]) | ((values[1:] == values[:-1]) & otherwise)
    return found


def said(
    stage: ReadyStage,
    hand: KeysInHand,
    changed: pa.Table,
    rows: tuple[Ints, Ints, Mapping[str, pa.Array]],
    moment: Moment,
) -> Outcome:
    """What a batch does: the changed state, and of each row its key, its event time and its values, by column."""
    key, times, values = rows
    count = len(key)
    keys = [hand.names.column(one.name).take(pa.array(key)) for one in stage.key]
    about = About(
        pa.table([*keys, pa.array(times), pa.array(times + 1)], schema=stage.names),
        timing=np.full(count, "on_time"),
        final=np.ones(count, bool),
        panes=np.zeros(count, np.int32),
        on_time_panes=np.zeros(count, np.int32),
        records=np.ones(count, np.int64),
    )
    panes = pane_rows(stage, moment, "insert", about, None, values)
    none, nothing = np.empty(0, np.int64), pa.schema(stage.names).empty_table()
    late, again = np.zeros(hand.records.num_rows, bool), np.zeros(count, bool)
    return Outcome(changed, panes, late, missed(stage, nothing, none, none), again)


def _names(
    stage: ReadyStage,
    known: pa.Table,
    key_of_known: Ints,
    elements: pa.Table,
    key_of_element: Ints,
    count: int,
) -> pa.Table:
    """The key of each key in hand; bounds it has none."""
    columns = [one.name for one in stage.key]
    keys = named(columns, known, key_of_known, elements, key_of_element, count).columns
    zero = pa.array(np.zeros(count, np.int64))
    return pa.table([*keys, zero, zero], schema=stage.names)
