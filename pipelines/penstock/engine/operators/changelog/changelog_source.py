"""Process panes that another stream published: emit them unchanged, as changes for downstream stages."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch_time import BatchTime
from penstock.engine.errors import ChangelogLatenessError
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.pane_rows import PaneHeaders, make_pane_rows
from penstock.engine.operators.windowed.window_update import StageResult, make_late_rows
from penstock.engine.plan.changelog import PANE_CHANGE_COLUMN, PANE_LATENESS_COLUMN
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.state.state_tree import StateTree


def process_changelog(
    stage: CompiledStage, state: StateTree, elements: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Emit each pane that is a change, in its own window. It stores no state, and no pane is late."""
    _refuse_excess_lateness(stage, elements)
    changes = elements.filter(pc.not_equal(elements.column(PANE_CHANGE_COLUMN), 0))
    retract_panes, insert_panes = (
        _make_panes(stage, changes, kind, batch_time) for kind in ("retract", "insert")
    )
    panes = pa.concat_tables([retract_panes, insert_panes])
    no_times, no_rows = np.empty(0, np.int64), stage.window_schema.empty_table()
    is_late, is_restated = np.zeros(elements.num_rows, bool), np.zeros(panes.num_rows, bool)
    return StageResult(
        state.schema.empty_table(),
        panes,
        is_late,
        make_late_rows(stage, no_rows, no_times, no_times),
        is_restated,
    )


def _make_panes(stage: CompiledStage, changes: pa.Table, pane_kind: str, batch_time: BatchTime) -> pa.Table:
    rows = changes.filter(pc.equal(changes.column(PANE_CHANGE_COLUMN), 1 if pane_kind == "insert" else -1))
    count = rows.num_rows
    unbounded_values = (("window_start", MIN_TIMESTAMP_MS), ("window_end", MAX_TIMESTAMP_MS))
    bounds = [pc.fill_null(rows.column(name), unbounded) for name, unbounded in unbounded_values]
    headers = PaneHeaders(
        pa.table(bounds, schema=stage.window_schema),
        timing=np.full(count, "on_time"),
        is_final=np.zeros(count, bool),
        earlier_panes=np.zeros(count, np.int32),
        earlier_on_time_panes=np.zeros(count, np.int32),
        record_counts=np.ones(count, np.int64),
    )
    values = {accumulator.output: rows.column(accumulator.output) for accumulator in stage.accumulators}
    return make_pane_rows(stage, batch_time, pane_kind, headers, None, values)


def _refuse_excess_lateness(stage: CompiledStage, elements: pa.Table) -> None:
    """Raise ChangelogLatenessError if upstream windows change for longer than this stage allows."""
    max_lateness = pc.max(elements.column(PANE_LATENESS_COLUMN)).as_py()
    if max_lateness is not None and max_lateness > stage.plan.lateness:
        topic = stage.plan.inputs[0]
        raise ChangelogLatenessError(topic, max_lateness, stage.plan.lateness)
