"""The fold of a join without windows. Every row stands by itself, and is never corrected.

A record is late once the watermark is past its instant by more than the lateness. So whoever is in time finds every
partner that was: partners are held for as long as one may come.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.keyed import TOPIC, KeysInHand, keys_in_hand
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.pairing.hand import Records, records_in
from penstock.pipelines.fold.pairing.partners import Met, as_of, between
from penstock.pipelines.fold.pairing.slots import ENDS, LEFT, MATCHED, TIME, held_name, tells_ends
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome, missed
from penstock.pipelines.plan.joins import Join
from penstock.pipelines.plan.pairing import AsOf, Between
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


def fold_pairs(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Let records that came meet those that are held, and keep those that may still meet others."""
    time = numpy_column(elements.column("_time"))
    late = np.asarray(stage.closes_at(time + 1) <= moment.watermark_before, bool)
    hand = keys_in_hand(stage, state, elements.filter(pa.array(~late)), moment, (TOPIC,))
    records = records_in(stage, hand)
    met = _met(stage, records, moment)
    left, right = _shown(stage, records, met)
    panes = _panes(stage, hand, records, left, right, moment)
    refused = elements.filter(pa.array(late))
    for bound in ("window_start", "window_end"):
        at = time[late] + (bound == "window_end")
        refused = refused.append_column(bound, pa.array(at))
    told = missed(stage, refused, time[late], time[late] + 1)
    return Outcome(_kept(stage, hand, records, met), panes, late, told, np.zeros(panes.num_rows, bool))


def _met(stage: ReadyStage, records: Records, moment: Moment) -> Met:
    match stage.plan.window:
        case Between() as window:
            return between(window, records, stage.plan.lateness, moment.watermark)
        case AsOf() as window:
            return as_of(window, records, stage.plan.lateness, moment.watermark)
        case other:
            raise TypeError(f"{other} pairs nothing")


def _shown(stage: ReadyStage, records: Records, met: Met) -> tuple[Ints, Ints]:
    """The rows of the join, as pairs of records; -1 stands for none."""
    join = stage.plan.join
    assert join is not None
    if isinstance(stage.plan.window, AsOf):
        return _by_kind(join, met.left, met.right)
    alone = ~met.held & ~met.matched
    lefts, rights = (np.flatnonzero(alone & side) for side in (records.left, ~records.left))
    nobody = np.full(len(lefts), -1), np.full(len(rights), -1)
    match join.kind:
        case "semi":
            first = met.matched & ~records.matched & records.left
            return np.flatnonzero(first), np.full(np.count_nonzero(first), -1)
        case "anti":
            return lefts, nobody[0]
    left, right = met.left, met.right
    if join.kind in ("left", "full"):
        left, right = np.append(left, lefts), np.append(right, nobody[0])
    if join.kind in ("right", "full"):
        left, right = np.append(left, nobody[1]), np.append(right, rights)
    return left, right


def _by_kind(join: Join, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Of records that were asked for their partner those that the join shows."""
    there = right >= 0
    chosen: Mask = {"inner": there, "semi": there, "anti": ~there}.get(join.kind, there | True)
    return left[chosen], right[chosen]


def _panes(
    stage: ReadyStage, hand: KeysInHand, records: Records, left: Ints, right: Ints, moment: Moment
) -> pa.Table:
    count = len(left)
    times = np.append(records.time, -NEVER)
    at = np.maximum(times[left], times[right]) if isinstance(stage.plan.window, Between) else times[left]
    whose = records.key[np.where(left >= 0, left, right)]
    keys = [hand.names.column(one.name).take(pa.array(whose)) for one in stage.key]
    about = About(
        pa.table([*keys, pa.array(at), pa.array(at + 1)], schema=stage.names),
        timing=np.full(count, "on_time"),
        final=np.ones(count, bool),
        panes=np.zeros(count, np.int32),
        on_time_panes=np.zeros(count, np.int32),
        records=(left >= 0).astype(np.int64) + (right >= 0),
    )
    return pane_rows(stage, moment, "insert", about, None, _values(stage, hand, records, left, right))


def _values(
    stage: ReadyStage, hand: KeysInHand, records: Records, left: Ints, right: Ints
) -> dict[str, pa.Array]:
    """The columns of the rows, with nulls for who is not there."""
    join = stage.plan.join
    assert join is not None
    sides = {join.left: left, join.right: right}
    values: dict[str, Any] = {}
    for column, field in zip(join.columns, stage.results, strict=True):
        at = sides[column.input]
        number = pa.array(np.maximum(at, 0), mask=at < 0)
        if column.field in records.fields.column_names:
            found = records.fields.column(column.field)
            values[column.name] = pc.take(found, number).combine_chunks()
        else:  # a field of the key, which both have
            whose = pa.array(records.key[np.maximum(at, 0)] if len(records) else at, mask=at < 0)
            values[column.name] = pc.take(hand.names.column(column.field), whose).combine_chunks()
        values[column.name] = values[column.name].cast(field.type)
    return values


def _kept(stage: ReadyStage, hand: KeysInHand, records: Records, met: Met) -> pa.Table:
    """The rows of the state: each record that is held, and one that says so for a key which holds none."""
    held = np.flatnonzero(met.held)
    empty = np.setdiff1d(np.arange(len(hand)), records.key[held])
    key = np.append(records.key[held], empty)
    order = np.argsort(key, kind="stable")
    key, place = key[order], np.append(held, np.full(len(empty), -1))[order]
    gone = place < 0
    number = pa.array(np.maximum(place, 0), mask=gone)
    groups = hand.groups.where(key)
    count = len(key)
    at = np.maximum(place, 0)
    none = not len(records)

    def of(column: np.ndarray, otherwise: Any) -> np.ndarray:
        return np.full(count, otherwise) if none else np.where(gone, otherwise, column[at])

    columns: dict[str, Any] = {
        GROUP_HI: groups.hi,
        GROUP_LO: groups.lo,
        DUE_EVENT: of(met.due, NEVER),
        DUE_CLOCK: np.full(count, NEVER),
        DROPPED: gone,
        **{name: hand.names.column(name).take(pa.array(key)) for name in hand.names.column_names},
        LEFT: of(records.left, otherwise=False),
        TIME: of(records.time, 0),
        MATCHED: of(met.matched, otherwise=False),
        **({ENDS: of(records.ends, otherwise=False)} if tells_ends(stage.plan.window) else {}),
        **{
            held_name(field.name): pc.take(records.fields.column(field.name), number)
            for field in stage.fields
        },
    }
    return pa.table(columns)
