"""Pending retractions: panes of merged windows that a session must still retract or mark as replaced.

Each is stored as a row of the merged window, as it was when it last emitted a pane. It is settled when its
owner emits a pane. A retraction is written no later than the merged window would have closed, even if nothing
replaces the window by then: afterwards no downstream stage could still apply it. A replacement marker whose
owner closes without a pane is dropped with the owner.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import NumpyColumn, Rows, rows_from_table, to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.joins.window_join import expand_join_rows
from penstock.engine.operators.pane_emission import FiringDecision, last_pane_values
from penstock.engine.operators.pane_rows import PaneHeaders, make_pane_rows
from penstock.engine.operators.stage_columns import REPLACED_BY_BOUNDS
from penstock.engine.operators.windowed.window_update import LoadedWindows, make_state_rows
from penstock.engine.state.header_columns import (
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    BoolArray,
    Int64Array,
    hash_column,
)
from penstock.engine.state.sorted_run import GroupHashes


@dataclass(frozen=True)
class PendingRetractions:
    """Merged windows, as the state stores them, and the row of the session that owns each."""

    stored: pa.Table
    owner_row: Int64Array

    def where(self, is_chosen: BoolArray) -> "PendingRetractions":
        """Return the selected ones."""
        return PendingRetractions(self.stored.filter(pa.array(is_chosen)), self.owner_row[is_chosen])


def collect_pending(
    pending_windows: pa.Table,
    sessions: pa.Table,
    is_merged: BoolArray,
    row_of_session: Int64Array,
    owner_of_pending: Int64Array,
) -> PendingRetractions:
    """Return the pending windows.

    They come from earlier batches, under their current owner, and from merges in this batch.

    `owner_of_pending` has the session that owns each window of `pending_windows`.
    """
    is_new = is_merged & to_numpy(sessions.column("has_pane"))
    all_windows = pa.concat_tables([pending_windows, sessions.filter(pa.array(is_new))])
    return PendingRetractions(
        all_windows.combine_chunks(), np.append(row_of_session[owner_of_pending], row_of_session[is_new])
    )


def settle_pending(
    stage: CompiledStage,
    pending: PendingRetractions,
    firing: FiringDecision,
    rows: Rows,
    batch_time: BatchTime,
) -> tuple[pa.Table, pa.Table]:
    """Return the pane rows of retractions that can be settled, and the state rows of those that stay pending."""
    owner_emits = firing.emits[pending.owner_row]
    is_closed = stage.closes_at(to_numpy(pending.stored.column("window_end"))) <= batch_time.watermark
    is_overdue = is_closed & ~owner_emits & stage.is_retracting
    owner_is_open = (stage.closes_at(rows["window_end"]) > batch_time.watermark)[pending.owner_row]
    still_pending = pending.where(~owner_emits & ~is_overdue & owner_is_open)
    with_owner = _settle_with_owner(stage, pending.where(owner_emits), firing, rows, batch_time)
    overdue_rows = _settle_overdue(stage, pending.where(is_overdue), batch_time)
    return pa.concat_tables([with_owner, overdue_rows]), _make_pending_rows(stage, still_pending, rows)


def _settle_with_owner(
    stage: CompiledStage,
    pending: PendingRetractions,
    firing: FiringDecision,
    rows: Rows,
    batch_time: BatchTime,
) -> pa.Table:
    """Return rows for windows whose owner emits a pane, with the owner's timing and finality."""
    headers = _make_headers(
        stage, pending, firing.timing[pending.owner_row], firing.is_final[pending.owner_row]
    )
    if stage.is_retracting:
        return _make_retractions(stage, pending, headers, batch_time)
    bounds = zip(REPLACED_BY_BOUNDS, ("window_start", "window_end"), strict=True)
    replaced_by = {field.name: pa.array(rows[bound][pending.owner_row]) for field, bound in bounds}
    return make_pane_rows(stage, batch_time, "replaced", headers, None, replaced_by)


def _settle_overdue(stage: CompiledStage, pending: PendingRetractions, batch_time: BatchTime) -> pa.Table:
    """Return rows for windows that close before their owner emits a pane: their last retraction."""
    if not stage.is_retracting:
        return stage.pane_schema.empty_table()
    count = len(pending.owner_row)
    headers = _make_headers(stage, pending, np.full(count, "late"), np.ones(count, bool))
    return _make_retractions(stage, pending, headers, batch_time)


def _make_headers(
    stage: CompiledStage, pending: PendingRetractions, timing: NumpyColumn, final: BoolArray
) -> PaneHeaders:
    windows = _read_windows(stage, pending)
    counts = (windows["panes"], windows["on_time_panes"], windows["last_pane_records"])
    return PaneHeaders(pending.stored.select(stage.window_schema.names), timing, final, *counts)


def _make_retractions(
    stage: CompiledStage, pending: PendingRetractions, headers: PaneHeaders, batch_time: BatchTime
) -> pa.Table:
    headers, values, _ = expand_join_rows(
        stage, headers, last_pane_values(stage, _read_windows(stage, pending))
    )
    return make_pane_rows(stage, batch_time, "retract", headers, values)


def _read_windows(stage: CompiledStage, pending: PendingRetractions) -> Rows:
    return rows_from_table(
        pending.stored.select([state_column.name for state_column in stage.stored_columns])
    )


def _make_pending_rows(stage: CompiledStage, pending: PendingRetractions, rows: Rows) -> pa.Table:
    windows = _read_windows(stage, pending)
    windows["pending_for_start"] = rows["window_start"][pending.owner_row]
    groups = GroupHashes(hash_column(pending.stored, GROUP_HI), hash_column(pending.stored, GROUP_LO))
    never = np.full(len(windows), MAX_TIMESTAMP_MS, np.int64)
    loaded = LoadedWindows(groups, windows, pending.stored.select(stage.window_schema.names))
    closing_watermarks = stage.closes_at(to_numpy(pending.stored.column("window_end")))
    due_event = closing_watermarks if stage.is_retracting else never
    return make_state_rows(stage, loaded, due_event, never, np.zeros(len(windows), bool))
