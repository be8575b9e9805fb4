"""The keys of a batch in hand: what each holds by the state, and what came, in one sequence."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.aggregates import lifted
from penstock.pipelines.fold.identity import key_hashes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.sequence import Series
from penstock.pipelines.fold.order.slots import BASE, HEAD, distance_slot, distances
from penstock.pipelines.fold.rows import Column, Rows, fresh, numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import (
    due_groups,
    named,
    position_in,
    together,
)
from penstock.pipelines.state.columns import Ints, Mask
from penstock.pipelines.state.run import Groups
from penstock.pipelines.state.tree import Tree


@dataclass(frozen=True)
class Whose:
    """Rows, and the number of the key that each belongs to."""

    key: Ints
    table: pa.Table

    def where(self, chosen: Mask) -> "Whose":
        """Some of them."""
        return Whose(self.key[chosen], self.table.filter(pa.array(chosen)))


@dataclass(frozen=True)
class Hand:
    """The keys of a batch: who they are, what is known of each, and the elements of all of them."""

    keys: Groups
    names: pa.Table
    heads: Rows
    series: Series


def in_hand(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Hand:
    """What is known of the keys that got elements or are due, and all their elements in order."""
    came = key_hashes([elements.column(field.name) for field in stage.key], elements.num_rows)
    keys = together(came, due_groups(state, moment))
    known, key_of_known = state.lookup(keys)
    key_of_element = position_in(keys, came)
    heads = fresh(HEAD, len(keys))
    for slot in HEAD:
        heads[slot.name][key_of_known] = numpy_column(known.column(slot.name))
    if BASE in known.column_names:
        heads[BASE] = np.full(len(keys), None, object)
        heads[BASE][key_of_known] = _values(known.column(BASE))
    key = [field.name for field in stage.key]
    names = named(key, known, key_of_known, elements, key_of_element, len(keys))
    old, new = Whose(key_of_known, known), Whose(key_of_element, elements)
    return Hand(keys, names, heads, _series(stage, len(keys), old, new, moment))


def _series(stage: ReadyStage, keys: int, known: Whose, came: Whose, moment: Moment) -> Series:
    held = known.where(numpy_column(known.table.column("records")) > 0)
    old, new = _kept(stage, held.table), _arrived(stage, came.table, moment)
    in_place = np.lexsort((numpy_column(held.table.column("position")), held.key))
    by_address = np.lexsort((*addresses(came.table), came.key))
    key, order = np.append(held.key, came.key), np.append(in_place, len(held.key) + by_address)
    order = order[np.argsort(key[order], kind="stable")]
    columns = {name: np.concatenate([old[name], new[name]])[order] for name in stage.element_columns}
    fields = {
        name: np.append(_values(held.table.column(distance_slot(name))), _values(came.table.column(name)))
        for name in distances(stage.plan.window)
    }
    in_order = {name: values[order] for name, values in fields.items()}
    return Series(keys, key[order], order < len(held.key), Rows(columns, len(key)), in_order)


def _kept(stage: ReadyStage, held: pa.Table) -> Rows:
    columns = {name: numpy_column(held.column(name)) for name in stage.element_columns if name != "matched"}
    return Rows({**columns, "matched": np.zeros(held.num_rows, bool)}, held.num_rows)


def _arrived(stage: ReadyStage, elements: pa.Table, moment: Moment) -> Rows:
    rows, count = lifted(stage.parts, elements), elements.num_rows
    time = numpy_column(elements.column("_time"))
    rows["records"] = np.ones(count, np.int64)
    rows["came"] = np.full(count, moment.clock, np.int64)
    rows["window_start"], rows["window_end"] = time, time + 1
    matches = "_matched" in elements.column_names
    rows["matched"] = numpy_column(elements.column("_matched")) if matches else np.zeros(count, bool)
    return rows


def addresses(elements: pa.Table) -> tuple[Column, ...]:
    """What elements are ordered by, the last first."""
    topics = elements.column("_topic")
    different = sorted(topics.unique().to_pylist())
    topic = np.zeros(elements.num_rows, np.int32)  # as a rule there is one
    if len(different) > 1:
        topic = numpy_column(pc.index_in(topics, pa.array(different, pa.string())))
    return numpy_column(elements.column("_offset")), numpy_column(elements.column("_partition")), topic


def _values(column: pa.ChunkedArray) -> Column:
    """Values as Python's own, None for null."""
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))
