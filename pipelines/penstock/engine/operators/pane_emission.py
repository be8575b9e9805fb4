"""Decide which windows emit a pane, and with what values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.joins.join_diff import JoinedRows, diff_rows
from penstock.engine.operators.joins.window_join import expand_join_rows, find_null_keys
from penstock.engine.operators.pane_rows import PaneHeaders, make_pane_rows
from penstock.engine.operators.stage_columns import last_pane_column
from penstock.engine.state.header_columns import BoolArray, Int64Array


@dataclass(frozen=True)
class FiringDecision:
    """What each window does in this batch.

    `emits` marks windows that fire; `inserts` those that write a pane; `retracts` those that first retract
    the last pane; `restates` those that insert unchanged values because the pane is on time or final.
    """

    emits: BoolArray
    inserts: BoolArray
    retracts: BoolArray
    restates: BoolArray
    timing: NumpyColumn
    is_final: BoolArray


@dataclass(frozen=True)
class EmittedPanes:
    """The panes of a batch, retractions first.

    Also which of them restate unchanged values, and the decision behind them.
    """

    panes: pa.Table
    is_restated: BoolArray
    firing: FiringDecision


@dataclass(frozen=True)
class PaneComparison:
    """Which windows have unchanged values. For retracting joins also the rows that were removed and added."""

    is_same: BoolArray
    removed_rows: JoinedRows | None = None
    added_rows: JoinedRows | None = None


def emit_panes(
    stage: CompiledStage, rows: Rows, window_table: pa.Table, batch_time: BatchTime
) -> EmittedPanes:
    """Fire the windows that are ready, record in `rows` that they fired, and return the panes."""
    emits, timing, is_final = _fire_triggers(stage, rows, batch_time)
    current_values = [accumulator.pane_values(rows) for accumulator in stage.accumulators]
    last_values = last_pane_values(stage, rows) if stage.is_retracting else current_values
    comparison = _compare_panes(
        stage,
        window_table,
        current_values,
        last_values,
        emits & rows["has_pane"] if stage.is_retracting else emits,
    )
    firing = _decide_emission(stage, rows, emits, timing, is_final, comparison.is_same)
    record_counts = rows["elements_since_pane" if stage.plan.accumulation == "discarding" else "records"]
    is_diff_only = _emits_diff_only(firing) & (comparison.removed_rows is not None)

    def panes(
        kind: str,
        window_mask: BoolArray,
        values: Sequence[NumpyColumn],
        element_counts: NumpyColumn,
        row_diff: JoinedRows | None,
    ) -> tuple[pa.Table, Int64Array]:
        """Return the pane rows, and the window of each."""
        headers = PaneHeaders(
            window_table, timing, is_final, rows["panes"], rows["on_time_panes"], element_counts
        )
        whole_windows = np.flatnonzero(window_mask & ~is_diff_only)
        whole_headers, whole_values, origin = expand_join_rows(
            stage, headers.take(whole_windows), [value[whole_windows] for value in values]
        )
        whole_rows = make_pane_rows(stage, batch_time, kind, whole_headers, whole_values)
        if row_diff is None:
            return whole_rows, whole_windows[origin]
        diff_rows = row_diff.where((window_mask & is_diff_only)[row_diff.window])
        diff_panes = make_pane_rows(
            stage, batch_time, kind, headers.take(diff_rows.window), diff_rows.columns
        )
        return pa.concat_tables([whole_rows, diff_panes]), np.append(whole_windows[origin], diff_rows.window)

    retract_panes, _ = panes(
        "retract", firing.retracts, last_values, rows["last_pane_records"], comparison.removed_rows
    )
    insert_panes, window_of_insert = panes(
        "insert", firing.inserts, current_values, record_counts, comparison.added_rows
    )
    _record_firing(stage, rows, firing)
    is_restated = np.append(np.zeros(retract_panes.num_rows, bool), firing.restates[window_of_insert])
    return EmittedPanes(pa.concat_tables([retract_panes, insert_panes]), is_restated, firing)


def last_pane_values(stage: CompiledStage, rows: Rows) -> list[NumpyColumn]:
    """Return the values of the last pane of each window."""
    last_rows = Rows({part.name: rows[last_pane_column(part.name)] for part in stage.parts}, len(rows))
    return [accumulator.pane_values(last_rows) for accumulator in stage.accumulators]


def _fire_triggers(
    stage: CompiledStage, rows: Rows, batch_time: BatchTime
) -> tuple[BoolArray, NumpyColumn, BoolArray]:
    """Return which windows emit, their timing, and whether the pane is final."""
    has_new_elements, is_active = rows["elements_since_pane"] > 0, ~rows["finished"]
    has_ended = rows["window_end"] <= batch_time.watermark
    is_at_end = has_ended & ~rows["past_end"] & stage.trigger_machine.fires_at_end(rows, batch_time)
    # Without new elements only the end itself fires. A later firing comes from a timer whose elements were
    # already shown.
    is_ending = is_at_end & (rows["window_end"] > batch_time.watermark_before)
    is_ready = (
        is_active & stage.trigger_machine.should_fire(rows, batch_time) & (has_new_elements | is_ending)
    )
    is_closing = is_active & (stage.closes_at(rows["window_end"]) <= batch_time.watermark)
    is_on_time = is_ready & is_ending
    is_finished = stage.trigger_machine.on_fire(rows, is_ready, batch_time)
    final_pane_masks = {
        "never": is_closing & False,
        "when_changed": is_closing & has_new_elements,
        "always": is_closing | is_finished,
    }
    is_last_pane = final_pane_masks[stage.plan.final_pane]
    rows["past_end"] |= is_ready & is_at_end
    rows["finished"] |= is_finished
    if stage.has_merging_windows:
        rows["finished_at_end"] |= is_finished & is_at_end
    is_silent = (
        is_on_time & ~has_new_elements & ~is_last_pane
        if stage.plan.on_time_pane == "when_changed"
        else is_closing & False
    )
    timing = np.where(is_on_time, "on_time", np.where(has_ended, "late", "early"))
    return (is_ready | is_last_pane) & ~is_silent, timing, is_closing | is_finished


def _decide_emission(
    stage: CompiledStage,
    rows: Rows,
    emits: BoolArray,
    timing: NumpyColumn,
    is_final: BoolArray,
    is_same: BoolArray,
) -> FiringDecision:
    if not stage.is_retracting:
        return FiringDecision(emits, emits, emits & False, emits & False, timing, is_final)
    emits_again = emits & rows["has_pane"]
    # Where retractions removed every element, only the retraction of the last pane is written.
    is_empty = rows["records"] == 0
    is_redundant = emits_again & is_same & (timing != "on_time") & ~is_final
    inserts = emits & ~is_redundant & ~is_empty
    return FiringDecision(
        emits, inserts, emits_again & (~is_same | is_empty), inserts & emits_again & is_same, timing, is_final
    )


def _emits_diff_only(firing: FiringDecision) -> BoolArray:
    """Return the join panes that show only changed rows.

    They are neither on time nor final, so a whole pane still follows.
    """
    others_follow = (firing.timing != "on_time") & ~firing.is_final
    return np.asarray(firing.retracts & firing.inserts & others_follow, bool)


def _compare_panes(
    stage: CompiledStage,
    window_table: pa.Table,
    current_values: Sequence[NumpyColumn],
    last_values: Sequence[NumpyColumn],
    emits_again: BoolArray,
) -> PaneComparison:
    """Compare the current values with those of the last pane.

    For joins, compare the windows of `emits_again` row by row.
    """
    join = stage.plan.join
    if join is None or not stage.is_retracting:
        return PaneComparison(_is_equal(current_values, last_values))
    compared_windows, count = np.flatnonzero(emits_again), len(emits_again)
    old_columns, new_columns = (
        [column[compared_windows] for column in columns] for columns in (last_values, current_values)
    )
    row_diffs = diff_rows(
        join, old_columns, new_columns, find_null_keys(stage, window_table)[compared_windows]
    )
    removed_rows, added_rows = (JoinedRows(compared_windows[rows.window], rows.columns) for rows in row_diffs)
    changed_windows = np.append(removed_rows.window, added_rows.window)
    is_same = np.ones(count, bool)
    is_same[changed_windows] = False
    return PaneComparison(is_same, removed_rows, added_rows)


def _is_equal(current_values: Sequence[NumpyColumn], last_values: Sequence[NumpyColumn]) -> BoolArray:
    """Return which windows have equal values. Null equals null and NaN equals NaN."""
    pairs = zip(current_values, last_values, strict=True)
    equal_masks = [np.asarray((a == b) | ((a != a) & (b != b)), bool) for a, b in pairs]
    return np.asarray(np.logical_and.reduce(equal_masks), bool)


def _record_firing(stage: CompiledStage, rows: Rows, firing: FiringDecision) -> None:
    emits = firing.emits
    rows["panes"] += firing.inserts
    rows["on_time_panes"] += firing.inserts & (firing.timing != "early")
    rows["has_pane"] = np.where(emits, rows["records"] > 0, rows["has_pane"])
    rows["elements_since_pane"][emits] = 0
    if stage.is_retracting:
        rows["last_pane_records"][emits] = rows["records"][emits]
        for part in stage.parts:
            rows[last_pane_column(part.name)][emits] = rows[part.name][emits]
    if stage.plan.accumulation == "discarding":
        for part in stage.parts:
            rows[part.name][emits] = part.state_column.initial
