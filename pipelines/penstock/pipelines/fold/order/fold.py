"""The fold of order windows: a key's records, one after the other, with what the key holds before them.

Spark sends records one by one. Nothing is late, and each window shows one pane. Which records are in which window
is decided first (tumbling, sliding), as stretches of one sequence; the aggregates of all windows are then merged at
once.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.aggregates import lifted, merge_into
from penstock.pipelines.fold.identity import key_hashes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.sequence import Cut, Series, spans
from penstock.pipelines.fold.order.sliding import cut_sliding, sliding_due
from penstock.pipelines.fold.order.slots import BASE, HEAD, NUMBER, distance_slot, distances
from penstock.pipelines.fold.order.tumbling import cut_tumbling, tumbling_due
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import Column, Rows, fresh, numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import (
    Outcome,
    Touched,
    due_groups,
    missed,
    position_in,
    state_rows,
    summed,
    together,
)
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.state.columns import NEVER, Ints, Mask
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


def fold_in_order(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Let the clock do its part for each key that is due, then take the elements in their order."""
    hand = _in_hand(stage, state, elements, moment)
    cut = _cut(stage, hand, moment)
    panes = _panes(stage, hand, cut, moment)
    none = np.empty(0, np.int64)
    late = np.zeros(elements.num_rows, bool)
    nothing = pa.schema(stage.names).empty_table()
    return Outcome(_held(stage, hand, cut), panes, late, missed(stage, nothing, none, none))


def _in_hand(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Hand:
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
    source = np.zeros(len(keys), np.int64)
    source[key_of_element] = known.num_rows + np.arange(elements.num_rows)
    source[key_of_known] = np.arange(known.num_rows)
    key = [field.name for field in stage.key]
    both = pa.concat_tables([known.select(key), elements.select(key)])
    names = both.take(pa.array(source)) if key else both
    old, new = Whose(key_of_known, known), Whose(key_of_element, elements)
    return Hand(keys, names, heads, _series(stage, len(keys), old, new, moment))


def _series(stage: ReadyStage, keys: int, known: Whose, came: Whose, moment: Moment) -> Series:
    held = known.where(numpy_column(known.table.column("records")) > 0)
    old, new = _kept(stage, held.table), _arrived(stage, came.table, moment)
    in_place = np.lexsort((numpy_column(held.table.column("position")), held.key))
    by_address = np.lexsort((*_addresses(came.table), came.key))
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


def _addresses(elements: pa.Table) -> tuple[Column, ...]:
    """What elements are ordered by, the last first."""
    topics = elements.column("_topic")
    number = pa.array(sorted(topics.unique().to_pylist()), pa.string())
    topic = numpy_column(pc.index_in(topics, number))
    return numpy_column(elements.column("_offset")), numpy_column(elements.column("_partition")), topic


def _cut(stage: ReadyStage, hand: Hand, moment: Moment) -> Cut:
    match stage.plan.window:
        case Tumbling(close):
            return cut_tumbling(close, hand.series, hand.heads, moment.clock)
        case SlidingOrder() as window:
            return cut_sliding(window, hand.series, hand.heads, moment.clock)
        case other:
            raise TypeError(f"{other} is no order window")


def _panes(stage: ReadyStage, hand: Hand, cut: Cut, moment: Moment) -> pa.Table:
    rows, count = _merged(stage, hand.series, cut.begin, cut.end), len(cut.begin)
    nth = _nth_of_key(cut.key)
    about = About(
        _names(stage, hand, cut.key, rows),
        timing=np.full(count, "on_time"),
        final=np.ones(count, bool),
        panes=np.zeros(count, np.int32),
        on_time_panes=np.zeros(count, np.int32),
        records=rows["records"],
    )
    panes = pane_rows(
        stage,
        moment,
        "insert",
        about,
        [each.values(rows) for each in stage.accumulators],
        {NUMBER.name: pa.array(hand.heads["number"][cut.key] + nth)},
    )
    np.add.at(hand.heads["number"], cut.key, 1)
    return panes


def _names(stage: ReadyStage, hand: Hand, key: Ints, rows: Rows) -> pa.Table:
    """Key and bounds of each row."""
    keys = [hand.names.column(field.name).take(pa.array(key)) for field in stage.key]
    bounds = [pa.array(rows[bound]) for bound in ("window_start", "window_end")]
    return pa.table([*keys, *bounds], schema=stage.names)


def _nth_of_key(key: Ints) -> Ints:
    """For each window, how many of the same key come before it; a key's windows stand together."""
    first = np.searchsorted(key, key)
    return np.asarray(np.arange(len(key)) - first)


def _held(stage: ReadyStage, hand: Hand, cut: Cut) -> pa.Table:
    """The rows of the state: what each key holds, and one row for a key that holds nothing."""
    series = hand.series
    holds = series.beyond > cut.kept
    match stage.plan.window:
        case Tumbling(close):
            key, begin, end = np.arange(series.keys), cut.kept, series.beyond
            due = tumbling_due(close, cut.heads, holds)
        case SlidingOrder() as window:
            begin, key = spans(cut.kept, np.maximum(series.beyond, cut.kept + 1))
            end = np.where(holds[key], begin + 1, begin)
            due = sliding_due(window, cut.heads)
        case other:
            raise TypeError(f"{other} is no order window")
    rows = _merged(stage, series, begin, end)
    rows["position"] = np.arange(len(key))
    for slot in HEAD:
        rows[slot.name] = cut.heads[slot.name][key]
    if BASE in [slot.name for slot in stage.kept]:
        rows[BASE] = cut.heads[BASE][key]
    touched = Touched(hand.keys.where(key), rows, _names(stage, hand, key, rows))
    never = np.full(len(key), NEVER, np.int64)
    return state_rows(stage, touched, never, due[key], np.zeros(len(key), bool))


def _merged(stage: ReadyStage, series: Series, begin: Ints, end: Ints) -> Rows:
    """What some stretches of elements amount to, each as one row."""
    at, of = spans(begin, end)
    elements, count = series.rows.where(at), len(begin)
    rows = fresh([part.slot for part in stage.parts], count)
    merge_into(stage.parts, rows, of, elements)
    rows["records"] = summed(of, elements["records"], count)
    there = end > begin
    first = np.where(there, begin, 0)
    rows["came"] = np.where(there, series.rows["came"][first], 0) if len(at) else np.zeros(count, np.int64)
    rows["window_start"] = np.where(there, NEVER, 0)
    rows["window_end"] = np.where(there, -NEVER, 0)
    np.minimum.at(rows["window_start"], of, elements["window_start"])
    np.maximum.at(rows["window_end"], of, elements["window_end"])
    for name, values in series.distances.items():
        rows[distance_slot(name)] = _first_values(values, begin, end)
    return rows


def _first_values(values: Column, begin: Ints, end: Ints) -> Column:
    """The first value in each stretch that is not null."""
    there = np.flatnonzero([value is not None for value in values])
    nearest = np.searchsorted(there, begin)
    found = np.full(len(begin), None, object)
    has = nearest < len(there)
    has[has] = there[nearest[has]] < end[has]
    found[has] = values[there[nearest[has]]]
    return found


def _values(column: pa.ChunkedArray) -> Column:
    """Values as Python's own, None for null."""
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))
