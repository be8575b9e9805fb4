"""Windows that depend only on a record's time: fixed, sliding, calendar, global.

Partials arrive with their windows assigned, so the state looks a window up by key and bounds. The cost of a
batch depends only on the windows that got elements or became due.
"""

import numpy as np
import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import new_rows, to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.group_hashes import hash_keys, hash_windows
from penstock.engine.operators.pane_emission import emit_panes
from penstock.engine.operators.windowed.window_update import (
    LoadedWindows,
    StageResult,
    collect_key_columns,
    find_due_groups,
    find_positions,
    make_late_rows,
    make_window_state_rows,
    merge_into_windows,
    union_groups,
)
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.state.sorted_run import GroupHashes
from penstock.engine.state.state_tree import StateTree


def process_windows(
    stage: CompiledStage, state: StateTree, partials: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Merge a batch's partials into their windows."""
    is_late = _find_late_partials(stage, partials, batch_time)
    accepted = partials.filter(pa.array(~is_late))
    incoming_groups = _hash_partial_windows(stage, accepted)
    groups = union_groups(incoming_groups, find_due_groups(state, batch_time))
    window_of_partial = find_positions(groups, incoming_groups)
    loaded = _load_windows(stage, state, groups, accepted, window_of_partial)
    is_finished = loaded.rows["finished"][window_of_partial]
    is_late[np.flatnonzero(~is_late)[is_finished]] = True
    merge_into_windows(
        stage,
        loaded.rows,
        accepted.filter(pa.array(~is_finished)),
        window_of_partial[~is_finished],
        batch_time,
    )
    emission = emit_panes(stage, loaded.rows, loaded.window_table, batch_time)
    late_partials = partials.filter(pa.array(is_late))
    bounds = (late_partials.column(name).combine_chunks() for name in ("window_start", "window_end"))
    return StageResult(
        make_window_state_rows(stage, loaded, batch_time),
        emission.panes,
        is_late,
        make_late_rows(stage, late_partials, *bounds),
        emission.is_restated,
    )


def _find_late_partials(stage: CompiledStage, partials: pa.Table, batch_time: BatchTime) -> BoolArray:
    """Return the partials of windows that closed before this batch, and of records that lie in no window."""
    end = partials.column("window_end")
    is_closed = stage.closes_at(to_numpy(end)) <= batch_time.watermark_before
    return np.asarray(is_closed | np.asarray(end.is_null()))


def _hash_partial_windows(stage: CompiledStage, partials: pa.Table) -> GroupHashes:
    keys = hash_keys([partials.column(field.name) for field in stage.key], partials.num_rows)
    start, end = (to_numpy(partials.column(name)) for name in ("window_start", "window_end"))
    return hash_windows(keys, start, end)


def _load_windows(
    stage: CompiledStage,
    state: StateTree,
    groups: GroupHashes,
    accepted: pa.Table,
    window_of_partial: Int64Array,
) -> LoadedWindows:
    """Load the windows of the groups. A new window takes its key and bounds from a partial."""
    stored, positions = state.look_up_groups(groups)
    rows = new_rows(stage.stored_columns, len(groups))
    for state_column in stage.stored_columns:
        rows[state_column.name][positions] = to_numpy(stored.column(state_column.name))
    window_table = collect_key_columns(
        stage.window_schema.names, stored, positions, accepted, window_of_partial, len(groups)
    )
    for name in ("window_start", "window_end"):
        rows[name] = to_numpy(window_table.column(name))
    return LoadedWindows(groups, rows, window_table)
