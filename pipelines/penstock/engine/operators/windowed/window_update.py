"""Update the windows of a batch: shared by assigned windows, sessions and other operators."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import merge_partials
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, rows_from_table
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.state.header_columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    MIN_TIMESTAMP_MS,
    BoolArray,
    Int64Array,
)
from penstock.engine.state.sorted_run import GroupHashes
from penstock.engine.state.state_tree import StateTree, distinct_groups
from penstock.engine.triggers.machine import NewElementCounts


@dataclass(frozen=True)
class StageResult:
    """The result of a batch: changed state, panes, and the partials that were too late for their window.

    `late_rows` has one row per late partial: its key and bounds, and in `missed_start` and `missed_end` the
    bounds of the window that refused it.
    """

    changed_state: pa.Table
    panes: pa.Table
    is_late: BoolArray
    late_rows: pa.Table
    is_restated: BoolArray
    """Panes that restate unchanged values. They are not changes for downstream stages."""


@dataclass(frozen=True)
class LoadedWindows:
    """The windows of a batch: the group hash, the state columns, and the key and bounds of each."""

    groups: GroupHashes
    rows: Rows
    window_table: pa.Table


def find_due_groups(state: StateTree, batch_time: BatchTime) -> GroupHashes:
    """Return the groups that became due by watermark or by clock."""
    due_by_clock = [state.find_due_groups(*due_range) for due_range in _due_ranges(batch_time)]
    return distinct_groups([groups.hi for groups in due_by_clock], [groups.lo for groups in due_by_clock])


def count_due_rows(state: StateTree, batch_time: BatchTime) -> int:
    """Return an upper bound on the state rows that become due."""
    return sum(state.count_due_rows(*due_range) for due_range in _due_ranges(batch_time))


def _due_ranges(batch_time: BatchTime) -> tuple[tuple[str, int, int], ...]:
    # Include the clock of the previous batch: what was due at it may have been waiting for that batch.
    return (
        (DUE_EVENT, batch_time.watermark_before, batch_time.watermark),
        (DUE_CLOCK, max(batch_time.clock_before, MIN_TIMESTAMP_MS + 1) - 1, batch_time.clock),
    )


def union_groups(left: GroupHashes, right: GroupHashes) -> GroupHashes:
    """Return the groups of both, each once, in order."""
    return distinct_groups([left.hi, right.hi], [left.lo, right.lo])


def find_positions(groups: GroupHashes, wanted: GroupHashes) -> Int64Array:
    """Return the position of each wanted group. `groups` must be sorted and contain all of them."""
    positions = np.searchsorted(groups.hi, wanted.hi)
    while (is_collision := groups.lo[positions] != wanted.lo).any():
        positions = positions + is_collision
    return positions


def collect_key_columns(
    column_names: Sequence[str],
    stored: pa.Table,
    group_of_stored: Int64Array,
    incoming: pa.Table,
    group_of_incoming: Int64Array,
    count: int,
) -> pa.Table:
    """Return columns for groups: from the state if stored, otherwise from an incoming row."""
    source = np.zeros(count, np.int64)
    source[group_of_incoming] = stored.num_rows + np.arange(incoming.num_rows)
    source[group_of_stored] = np.arange(stored.num_rows)
    all_rows = pa.concat_tables([stored.select(column_names), incoming.select(column_names)])
    return all_rows.take(pa.array(source)).combine_chunks() if column_names else all_rows


def merge_into_windows(
    stage: CompiledStage, rows: Rows, partials: pa.Table, window_of_partial: Int64Array, batch_time: BatchTime
) -> None:
    """Merge partials into their windows, and update the trigger. `window_of_partial` has the row of each."""
    incoming = rows_from_table(partials.select(stage.merged_columns))
    merge_partials(stage.parts, rows, window_of_partial, incoming)
    element_counts = sum_by_window(window_of_partial, incoming["elements"], len(rows))
    change_counts = (
        sum_by_window(window_of_partial, incoming["change_count"], len(rows))
        if stage.reads_changes
        else element_counts
    )
    match_counts = {
        predicate: sum_by_window(window_of_partial, incoming[f"matches_{index}"], len(rows))
        for index, predicate in enumerate(stage.predicates)
    }
    rows["records"] += element_counts
    rows["elements_since_pane"] += change_counts
    stage.trigger_machine.on_elements(rows, NewElementCounts(change_counts, match_counts), batch_time)


def sum_by_window(window_of_value: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """Return the sum per window, for `count` windows."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, window_of_value, values)
    return sums


def make_window_state_rows(stage: CompiledStage, loaded: LoadedWindows, batch_time: BatchTime) -> pa.Table:
    """Build the state rows of windows. Closed windows are marked as dropped."""
    rows = loaded.rows
    end, closing_watermark = rows["window_end"], stage.closes_at(rows["window_end"])
    due_event = np.where(end > batch_time.watermark, end, closing_watermark)
    due_clock = _next_clock_due(stage, rows, batch_time)
    if stage.uses_processing_time:  # the ends are clock times, so the clock makes them due
        due_clock = np.minimum(due_clock, due_event)
    return make_state_rows(stage, loaded, due_event, due_clock, closing_watermark <= batch_time.watermark)


def make_state_rows(
    stage: CompiledStage,
    loaded: LoadedWindows,
    due_event: Int64Array,
    due_clock: Int64Array,
    is_dropped: BoolArray,
) -> pa.Table:
    """Build state rows: the header columns, then the stage's columns."""
    header = {
        GROUP_HI: loaded.groups.hi,
        GROUP_LO: loaded.groups.lo,
        DUE_EVENT: due_event,
        DUE_CLOCK: due_clock,
        DROPPED: is_dropped,
    }
    stored_table = loaded.rows.to_table(
        pa.schema([pa.field(state_column.name, state_column.type) for state_column in stage.stored_columns])
    )
    columns = [
        *(pa.array(column) for column in header.values()),
        *loaded.window_table.columns,
        *stored_table.columns,
    ]
    return pa.table(columns, names=[*header, *loaded.window_table.column_names, *stored_table.column_names])


def make_late_rows(
    stage: CompiledStage, late_partials: pa.Table, start: Int64Array, end: Int64Array
) -> pa.Table:
    """Return late partials, with the bounds of the window that refused them."""
    key_columns = late_partials.select(stage.window_schema.names)
    return key_columns.append_column("missed_start", pa.array(start)).append_column(
        "missed_end", pa.array(end)
    )


def _next_clock_due(stage: CompiledStage, rows: Rows, batch_time: BatchTime) -> Int64Array:
    """Return the next clock at which a timer fires for elements that no pane has shown."""
    has_new_elements = ~rows["finished"] & (rows["elements_since_pane"] > 0)
    return np.where(has_new_elements, stage.trigger_machine.next_timer(rows, batch_time), MAX_TIMESTAMP_MS)
