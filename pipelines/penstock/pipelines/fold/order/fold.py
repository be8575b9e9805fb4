"""The fold of order windows: a key's records, one after the other, with what the key holds before them.

Spark sends records one by one. Nothing is late, and each window shows one pane. Which records are in which window
is decided first (tumbling, sliding), as stretches of one sequence; the aggregates of all windows are then merged at
once.
"""

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates import merge_into
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.hand import Hand, in_hand
from penstock.pipelines.fold.order.sequence import Cut, Series, spans
from penstock.pipelines.fold.order.sliding import cut_sliding, sliding_due
from penstock.pipelines.fold.order.slots import BASE, HEAD, NUMBER, distance_slot
from penstock.pipelines.fold.order.tumbling import cut_tumbling, tumbling_due
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import Column, Rows, fresh
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import (
    Outcome,
    Touched,
    missed,
    state_rows,
    summed,
)
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.state.columns import NEVER, Ints
from penstock.pipelines.state.tree import Tree


def fold_in_order(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Let the clock do its part for each key that is due, then take the elements in their order."""
    hand = in_hand(stage, state, elements, moment)
    cut = _cut(stage, hand, moment)
    panes = _panes(stage, hand, cut, moment)
    none = np.empty(0, np.int64)
    late = np.zeros(elements.num_rows, bool)
    nothing = pa.schema(stage.names).empty_table()
    never = np.zeros(panes.num_rows, bool)
    return Outcome(_held(stage, hand, cut), panes, late, missed(stage, nothing, none, none), never)


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
