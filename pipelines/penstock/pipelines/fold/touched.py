"""The windows that a batch touches: what the folds of assigned windows and of sessions do with them alike."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates import merge_into
from penstock.pipelines.fold.machine import Elements
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Rows, known_rows
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.state.columns import (
    BEFORE_ALL,
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    NEVER,
    Ints,
    Mask,
)
from penstock.pipelines.state.run import Groups
from penstock.pipelines.state.tree import Tree, distinct


@dataclass(frozen=True)
class Outcome:
    """What a batch does: the state that changed, the panes, and which partials came too late for their window.

    `missed` has a row for each of these, as it came: its key and bounds, and as `missed_start` and `missed_end`
    the window that refused it.
    """

    changed: pa.Table
    panes: pa.Table
    late: Mask
    missed: pa.Table
    restated: Mask
    """Which of the panes say once more what stands: to whoever reads panes as changes these are none."""


@dataclass(frozen=True)
class Touched:
    """Windows in hand: the group by which the state finds each, what is known of it, its key and bounds."""

    groups: Groups
    rows: Rows
    names: pa.Table


def due_groups(state: Tree, moment: Moment) -> Groups:
    """Groups for which the watermark or the clock came to something."""
    found = [state.due(*since) for since in _since(moment)]
    return distinct([groups.hi for groups in found], [groups.lo for groups in found])


def due_rows(state: Tree, moment: Moment) -> int:
    """How many rows of the state these have at most."""
    return sum(state.due_rows(*since) for since in _since(moment))


def _since(moment: Moment) -> tuple[tuple[str, int, int], ...]:
    # What was due at the very clock of the batch before is asked again: it may have been waiting for that batch.
    return (
        (DUE_EVENT, moment.watermark_before, moment.watermark),
        (DUE_CLOCK, max(moment.clock_before, BEFORE_ALL + 1) - 1, moment.clock),
    )


def together(one: Groups, other: Groups) -> Groups:
    """The groups of both, each once, in order."""
    return distinct([one.hi, other.hi], [one.lo, other.lo])


def position_in(groups: Groups, wanted: Groups) -> Ints:
    """Where each wanted group stands among groups that are in order and hold all of them."""
    first = np.searchsorted(groups.hi, wanted.hi)
    while (clash := groups.lo[first] != wanted.lo).any():
        first = first + clash
    return first


def named(
    columns: Sequence[str], known: pa.Table, of_known: Ints, came: pa.Table, of_came: Ints, count: int
) -> pa.Table:
    """What groups are called: by what is known of them, and those that are new by what came for them."""
    source = np.zeros(count, np.int64)
    source[of_came] = known.num_rows + np.arange(came.num_rows)
    source[of_known] = np.arange(known.num_rows)
    both = pa.concat_tables([known.select(columns), came.select(columns)])
    return both.take(pa.array(source)).combine_chunks() if columns else both


def take_in(stage: ReadyStage, rows: Rows, partials: pa.Table, windows: Ints, moment: Moment) -> None:
    """Count partials into their windows, and tell the trigger; `windows` says which row is whose."""
    incoming = known_rows(partials.select(stage.counted))
    merge_into(stage.parts, rows, windows, incoming)
    elements = summed(windows, incoming["elements"], len(rows))
    news = summed(windows, incoming["news"], len(rows)) if stage.changes else elements
    matches = {
        p: summed(windows, incoming[f"matches_{i}"], len(rows)) for i, p in enumerate(stage.predicates)
    }
    rows["records"] += elements
    rows["unshown"] += news
    stage.machine.observe(rows, Elements(news, matches), moment)


def summed(windows: Ints, values: Ints, count: int) -> Ints:
    """Sums by window, for `count` windows."""
    total = np.zeros(count, np.int64)
    np.add.at(total, windows, values)
    return total


def settled(stage: ReadyStage, touched: Touched, moment: Moment) -> pa.Table:
    """The windows as the state is to keep them; those that are closed are marked as dropped."""
    rows = touched.rows
    end, close = rows["window_end"], stage.closes_at(rows["window_end"])
    due_event = np.where(end > moment.watermark, end, close)
    due_clock = _clock_due(stage, rows, moment)
    if stage.by_the_clock:  # then ends are times of the clock, and somebody has to look at it
        due_clock = np.minimum(due_clock, due_event)
    return state_rows(stage, touched, due_event, due_clock, close <= moment.watermark)


def state_rows(
    stage: ReadyStage, touched: Touched, due_event: Ints, due_clock: Ints, dropped: Mask
) -> pa.Table:
    """Rows of the state: the columns that every state has, and what this stage keeps."""
    header = {
        GROUP_HI: touched.groups.hi,
        GROUP_LO: touched.groups.lo,
        DUE_EVENT: due_event,
        DUE_CLOCK: due_clock,
        DROPPED: dropped,
    }
    kept = touched.rows.table(pa.schema([pa.field(slot.name, slot.type) for slot in stage.kept]))
    columns = [*(pa.array(column) for column in header.values()), *touched.names.columns, *kept.columns]
    return pa.table(columns, names=[*header, *touched.names.column_names, *kept.column_names])


def missed(stage: ReadyStage, refused: pa.Table, start: Ints, end: Ints) -> pa.Table:
    """What came too late: as it came, and the bounds of the window that did not take it."""
    names = refused.select(stage.names.names)
    return names.append_column("missed_start", pa.array(start)).append_column("missed_end", pa.array(end))


def _clock_due(stage: ReadyStage, rows: Rows, moment: Moment) -> Ints:
    """When the clock alone would make a window fire: when a timer runs out whose elements no pane has shown."""
    to_come = ~rows["finished"] & (rows["unshown"] > 0)
    return np.where(to_come, stage.machine.clock_due(rows, moment), NEVER)
