"""The fold of windows that a record's time alone decides: fixed, sliding, calendar, global.

Every record already knows its windows when it comes here, so a window is found by its key and bounds, and what
a batch costs is what it touched: the windows that got elements, and those for which the watermark or the clock
came to something.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.accumulators import merge_into
from penstock.pipelines.fold.emission import emit, waits_for_end
from penstock.pipelines.fold.identity import key_hashes, window_hashes
from penstock.pipelines.fold.machine import Elements
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Rows, fresh, numpy_column
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
    """What a batch does: the state that changed, the panes, and which partials came too late for their window."""

    changed: pa.Table
    panes: pa.Table
    late: Mask


@dataclass(frozen=True)
class Touched:
    """The windows of a batch: who they are, what is known of them, and the key and bounds of each."""

    groups: Groups
    rows: Rows
    names: pa.Table

    def of(self, came: Groups) -> Ints:
        """For each partial, the row of its window."""
        first = np.searchsorted(self.groups.hi, came.hi)
        while (clash := self.groups.lo[first] != came.lo).any():
            first = first + clash
        return first


def fold(stage: ReadyStage, state: Tree, partials: pa.Table, moment: Moment) -> Outcome:
    """Fold a batch's partials into the state. Pure: the same input gives the same outcome, row for row."""
    late = _outside(stage, partials, moment)
    accepted = partials.filter(pa.array(~late))
    came = _windows_of(stage, accepted)
    touched = _gather(stage, state, _touched(state, came, moment), accepted, came)
    finished = touched.rows["finished"][touched.of(came)]
    late[np.flatnonzero(~late)[finished]] = True
    _take_in(stage, touched, accepted.filter(pa.array(~finished)), came.where(~finished), moment)
    panes = emit(stage, touched.rows, touched.names, moment)
    return Outcome(_settled(stage, touched, moment), panes, late)


def _outside(stage: ReadyStage, partials: pa.Table, moment: Moment) -> Mask:
    """Partials of windows that were closed before this batch, or of records that lie in no window at all."""
    end = partials.column("window_end")
    closed = stage.closes_at(numpy_column(end)) <= moment.watermark_before
    return np.asarray(closed | np.asarray(end.is_null()))


def _windows_of(stage: ReadyStage, partials: pa.Table) -> Groups:
    keys = key_hashes([partials.column(field.name) for field in stage.key], partials.num_rows)
    start, end = (numpy_column(partials.column(name)) for name in ("window_start", "window_end"))
    return window_hashes(keys, start, end)


def _touched(state: Tree, came: Groups, moment: Moment) -> Groups:
    by_event = state.due(DUE_EVENT, moment.watermark_before, moment.watermark)
    # What was due at the very clock of the batch before is asked again: it may have been waiting for that batch.
    by_clock = state.due(DUE_CLOCK, max(moment.clock_before, BEFORE_ALL + 1) - 1, moment.clock)
    return distinct([came.hi, by_event.hi, by_clock.hi], [came.lo, by_event.lo, by_clock.lo])


def _gather(stage: ReadyStage, state: Tree, groups: Groups, accepted: pa.Table, came: Groups) -> Touched:
    known, positions = state.lookup(groups)
    rows = fresh(stage.kept, len(groups))
    for slot in stage.kept:
        rows[slot.name][positions] = numpy_column(known.column(slot.name))
    touched = Touched(groups, rows, stage.names.empty_table())
    source = np.zeros(len(groups), np.int64)
    source[touched.of(came)] = known.num_rows + np.arange(accepted.num_rows)
    source[positions] = np.arange(known.num_rows)
    both = pa.concat_tables([known.select(stage.names.names), accepted.select(stage.names.names)])
    names = both.take(pa.array(source)).combine_chunks()
    rows["window_start"] = numpy_column(names.column("window_start"))
    rows["window_end"] = numpy_column(names.column("window_end"))
    return Touched(groups, rows, names)


def _take_in(stage: ReadyStage, touched: Touched, partials: pa.Table, came: Groups, moment: Moment) -> None:
    windows, rows = touched.of(came), touched.rows
    incoming = Rows({name: numpy_column(partials.column(name)) for name in stage.counted}, partials.num_rows)
    merge_into(stage.parts, rows, windows, incoming)
    elements = _summed(windows, incoming["elements"], len(rows))
    matches = {
        p: _summed(windows, incoming[f"matches_{i}"], len(rows)) for i, p in enumerate(stage.predicates)
    }
    rows["records"] += elements
    rows["unshown"] += elements
    stage.machine.observe(rows, Elements(elements, matches), moment)


def _clock_due(stage: ReadyStage, rows: Rows, moment: Moment) -> Ints:
    """When the clock alone would make a window fire: at the next batch where it waits for nothing any more."""
    active = ~rows["finished"]
    timer = stage.machine.clock_due(rows, moment)
    to_come = active & (rows["unshown"] > 0)
    next_batch = active & waits_for_end(stage, rows, moment) & stage.machine.ready(rows, moment)
    return np.where(next_batch, moment.clock, np.where(to_come, timer, NEVER))


def _summed(windows: Ints, values: Ints, count: int) -> Ints:
    total = np.zeros(count, np.int64)
    np.add.at(total, windows, values)
    return total


def _settled(stage: ReadyStage, touched: Touched, moment: Moment) -> pa.Table:
    rows = touched.rows
    end, close = rows["window_end"], stage.closes_at(rows["window_end"])
    header = {
        GROUP_HI: touched.groups.hi,
        GROUP_LO: touched.groups.lo,
        DUE_EVENT: np.where(end > moment.watermark, end, close),
        DUE_CLOCK: _clock_due(stage, rows, moment),
        DROPPED: close <= moment.watermark,
    }
    kept = rows.table(pa.schema([pa.field(slot.name, slot.type) for slot in stage.kept]))
    columns = [pa.array(column) for column in header.values()] + touched.names.columns + kept.columns
    return pa.table(columns, names=[*header, *touched.names.column_names, *kept.column_names])
