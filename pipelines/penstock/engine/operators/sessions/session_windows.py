"""Session windows, which grow and merge, so that all windows of a key are processed together.

Spark sends pieces: records of a key within one gap of each other, with the bounds that they cover. The state
groups rows by key. A key's rows are its open sessions, and merged windows with pending retractions (see
`pending_retractions`).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import merge_partials
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import NumpyColumn, Rows, new_rows, rows_from_table, to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.group_hashes import hash_keys
from penstock.engine.operators.pane_emission import emit_panes
from penstock.engine.operators.sessions.interval_merging import MergedIntervals, merge_intervals
from penstock.engine.operators.sessions.pending_retractions import collect_pending, settle_pending
from penstock.engine.operators.windowed.window_update import (
    LoadedWindows,
    StageResult,
    find_due_groups,
    find_positions,
    make_late_rows,
    make_window_state_rows,
    merge_into_windows,
    sum_by_window,
    union_groups,
)
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.state.sorted_run import GroupHashes
from penstock.engine.state.state_tree import StateTree
from penstock.engine.triggers.machine import WindowMerge


@dataclass(frozen=True)
class OpenSessions:
    """Open sessions: the number of each one's key, and its state row."""

    key_of_window: Int64Array
    stored: pa.Table

    def where(self, is_chosen: BoolArray) -> "OpenSessions":
        """Return the selected sessions."""
        return OpenSessions(self.key_of_window[is_chosen], self.stored.filter(pa.array(is_chosen)))

    def column(self, name: str) -> NumpyColumn:
        """Return one state column."""
        return to_numpy(self.stored.column(name))


@dataclass(frozen=True)
class SessionMerges:
    """Which sessions and pieces of a batch merge, and what becomes of each merged interval.

    `is_refused` intervals accept no pieces; `is_new` intervals become new sessions; all others continue
    unchanged.
    """

    intervals: MergedIntervals
    interval_of_session: Int64Array
    interval_of_piece: Int64Array
    is_refused: BoolArray
    is_new: BoolArray


@dataclass(frozen=True)
class SessionRows:
    """The sessions after the batch's merges, and the row that each session and piece became part of."""

    loaded: LoadedWindows
    row_of_session: Int64Array
    row_of_piece: Int64Array


def process_sessions(
    stage: CompiledStage, state: StateTree, partials: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Merge pieces into sessions, then emit panes."""
    incoming_groups = hash_keys([partials.column(field.name) for field in stage.key], partials.num_rows)
    keys = union_groups(incoming_groups, find_due_groups(state, batch_time))
    key_of_piece = find_positions(keys, incoming_groups)
    sessions, pending_windows = _load_sessions(state, keys)
    merges = _merge_sessions(stage, sessions, key_of_piece, partials, batch_time)
    is_late, is_merged = (
        merges.is_refused[merges.interval_of_piece],
        merges.is_new[merges.interval_of_session],
    )
    session_rows = _build_session_rows(stage, keys, sessions, merges, partials, key_of_piece)
    rows, window_table = session_rows.loaded.rows, session_rows.loaded.window_table
    pending = collect_pending(
        pending_windows.stored,
        sessions.stored,
        is_merged,
        session_rows.row_of_session,
        _find_owners(sessions, pending_windows),
    )
    _merge_sessions_into_rows(
        stage, rows, sessions.where(is_merged), session_rows.row_of_session[is_merged], batch_time
    )
    merge_into_windows(
        stage, rows, partials.filter(pa.array(~is_late)), session_rows.row_of_piece[~is_late], batch_time
    )
    emitted = emit_panes(stage, rows, window_table, batch_time)
    settled_panes, still_pending = settle_pending(stage, pending, emitted.firing, rows, batch_time)
    late_interval = merges.interval_of_piece[is_late]
    return StageResult(
        pa.concat_tables([make_window_state_rows(stage, session_rows.loaded, batch_time), still_pending]),
        pa.concat_tables([settled_panes, emitted.panes]),
        is_late,
        make_late_rows(
            stage,
            partials.filter(pa.array(is_late)),
            merges.intervals.start[late_interval],
            merges.intervals.end[late_interval],
        ),
        np.append(np.zeros(settled_panes.num_rows, bool), emitted.is_restated),
    )


def _load_sessions(state: StateTree, keys: GroupHashes) -> tuple[OpenSessions, OpenSessions]:
    """Load the open sessions of some keys, and their merged windows with pending retractions."""
    stored, key = state.look_up_groups(keys)
    all_windows = OpenSessions(key, stored)
    is_session = all_windows.column("pending_for_start") == MAX_TIMESTAMP_MS
    return all_windows.where(is_session), all_windows.where(~is_session)


def _find_owners(sessions: OpenSessions, pending_windows: OpenSessions) -> Int64Array:
    """Return the session that owns each pending window. A key's open sessions start at different times."""
    if not len(pending_windows.key_of_window):
        return np.empty(0, np.int64)
    starts = zip(sessions.key_of_window.tolist(), sessions.column("window_start").tolist(), strict=True)
    session_of_start = {start: position for position, start in enumerate(starts)}
    owner_starts = zip(
        pending_windows.key_of_window.tolist(),
        pending_windows.column("pending_for_start").tolist(),
        strict=True,
    )
    return np.array([session_of_start[owner_start] for owner_start in owner_starts], np.int64)


def _merge_sessions(
    stage: CompiledStage,
    sessions: OpenSessions,
    key_of_piece: Int64Array,
    partials: pa.Table,
    batch_time: BatchTime,
) -> SessionMerges:
    start, end = (
        np.append(sessions.column(f"window_{bound}"), to_numpy(partials.column(f"piece_{bound}")))
        for bound in ("start", "end")
    )
    intervals = merge_intervals(np.append(sessions.key_of_window, key_of_piece), start, end)
    count, session_count = len(intervals), len(sessions.key_of_window)
    interval_of_session, interval_of_piece = (
        intervals.interval_of_piece[:session_count],
        intervals.interval_of_piece[session_count:],
    )
    session_counts, piece_counts = (
        np.bincount(interval_numbers, minlength=count)
        for interval_numbers in (interval_of_session, interval_of_piece)
    )
    has_ended = intervals.end <= batch_time.watermark_before
    is_over = sessions.column("finished") & (
        has_ended[interval_of_session] | ~sessions.column("finished_at_end")
    )
    is_finished = (session_counts > 0) & (
        sum_by_window(interval_of_session, is_over.astype(np.int64), count) == session_counts
    )
    is_closed = (session_counts == 0) & (stage.closes_at(intervals.end) <= batch_time.watermark_before)
    is_unchanged = np.zeros(count, bool)
    is_unchanged[interval_of_session] = (start[:session_count] == intervals.start[interval_of_session]) & (
        end[:session_count] == intervals.end[interval_of_session]
    )
    still_finished = np.zeros(count, bool)
    still_finished[interval_of_session] = sessions.column("finished")
    is_refused = is_closed | np.where(is_unchanged, still_finished, is_finished)
    return SessionMerges(
        intervals,
        interval_of_session,
        interval_of_piece,
        is_refused,
        (piece_counts > 0) & ~is_unchanged & ~is_refused,
    )


def _build_session_rows(
    stage: CompiledStage,
    keys: GroupHashes,
    sessions: OpenSessions,
    merges: SessionMerges,
    partials: pa.Table,
    key_of_piece: Int64Array,
) -> SessionRows:
    """Build rows for the sessions that continue, followed by the new sessions."""
    is_continued = ~merges.is_new[merges.interval_of_session]
    continued, new_intervals = sessions.where(is_continued), np.flatnonzero(merges.is_new)
    count = len(continued.key_of_window) + len(new_intervals)
    row_of_interval = np.full(len(merges.intervals), -1)
    row_of_interval[new_intervals] = len(continued.key_of_window) + np.arange(len(new_intervals))
    row_of_session = row_of_interval[merges.interval_of_session]
    row_of_session[is_continued] = np.arange(len(continued.key_of_window))
    row_of_interval[merges.interval_of_session[is_continued]] = row_of_session[is_continued]

    rows = new_rows(stage.stored_columns, count)
    for state_column in stage.stored_columns:
        rows[state_column.name][: len(continued.key_of_window)] = continued.column(state_column.name)
    example_piece = np.zeros(len(merges.intervals), np.int64)
    example_piece[merges.interval_of_piece] = np.arange(partials.num_rows)
    first_pieces = partials.take(pa.array(example_piece[new_intervals]))
    window_table = _build_window_table(
        stage,
        continued,
        first_pieces,
        merges.intervals.start[new_intervals],
        merges.intervals.end[new_intervals],
    )
    for name in ("window_start", "window_end"):
        rows[name] = to_numpy(window_table.column(name))
    groups = keys.select(np.append(continued.key_of_window, key_of_piece[example_piece[new_intervals]]))
    return SessionRows(
        LoadedWindows(groups, rows, window_table), row_of_session, row_of_interval[merges.interval_of_piece]
    )


def _build_window_table(
    stage: CompiledStage, continued: OpenSessions, first_pieces: pa.Table, start: Int64Array, end: Int64Array
) -> pa.Table:
    """Return key and bounds of continued sessions, then of new ones."""
    keys = [first_pieces.column(field.name) for field in stage.key]
    new_windows = pa.table([*keys, pa.array(start), pa.array(end)], schema=stage.window_schema)
    return pa.concat_tables(
        [continued.stored.select(stage.window_schema.names), new_windows]
    ).combine_chunks()


def _merge_sessions_into_rows(
    stage: CompiledStage,
    rows: Rows,
    merged_sessions: OpenSessions,
    target_rows: Int64Array,
    batch_time: BatchTime,
) -> None:
    """Combine the states of merged sessions into the new ones, before the batch's elements are counted."""
    sources = rows_from_table(
        merged_sessions.stored.select([state_column.name for state_column in stage.stored_columns])
    )
    merge_partials(stage.parts, rows, target_rows, sources)
    for name in ("records", "elements_since_pane"):
        rows[name] += sum_by_window(target_rows, sources[name], len(rows))
    has_ended = rows["window_end"] <= batch_time.watermark_before
    merged_rows = np.unique(target_rows)
    rows["past_end"][merged_rows] = has_ended[merged_rows]
    window_merge = WindowMerge(sources, target_rows, sources["elements_since_pane"] > 0, has_ended)
    stage.trigger_machine.on_merge(rows, window_merge.for_sources(~sources["finished"]))
