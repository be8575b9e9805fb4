"""Rows of a published changelog topic: the panes of a batch, then its watermark."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.changelog.pane_changes import are_changes
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.plan.changelog import (
    PANE_CHANGE_COLUMN,
    PANE_KIND_COLUMN,
    PANE_LATENESS_COLUMN,
    PANE_WATERMARK_COLUMN,
)
from penstock.engine.plan.correction_time import correction_time_ms
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

WATERMARK_KIND = "watermark"
"""The pane kind of the record that ends a batch."""

MIN_EVENT_TIME_MS, MAX_EVENT_TIME_MS = -62_135_596_800_000, 253_402_300_799_999
"""Years 1 and 9999: the event times that stand for unbounded watermarks."""

CHANGELOG_FIELDS = (
    pa.field(PANE_CHANGE_COLUMN, pa.int64()),
    pa.field(PANE_WATERMARK_COLUMN, pa.int64()),
    pa.field(PANE_LATENESS_COLUMN, pa.int64()),
)


def published_schema(stage: CompiledStage) -> pa.Schema:
    """Return the published columns of a stage. They include those that make its panes readable as changes."""
    return pa.schema([*stage.pane_schema, *CHANGELOG_FIELDS])


def make_published_rows(stage: CompiledStage, result: StageResult, batch_time: BatchTime) -> pa.Table:
    """Return the panes of a batch, then a watermark row.

    Empty if there are no panes and the watermark did not move.
    """
    panes, schema = result.panes, published_schema(stage)
    if not panes.num_rows and batch_time.watermark == batch_time.watermark_before:
        return schema.empty_table()
    is_insert = np.asarray(pc.equal(panes.column(PANE_KIND_COLUMN), "insert"))
    change = np.where(are_changes(result), np.where(is_insert, 1, -1), 0)
    lateness, passed_before, passed_after = (
        correction_time_ms(stage.plan),
        clamp_to_event_time(batch_time.watermark_before),
        clamp_to_event_time(batch_time.watermark),
    )
    rows = panes.append_column(CHANGELOG_FIELDS[0], pa.array(change))
    rows = rows.append_column(CHANGELOG_FIELDS[1], pa.array(np.full(panes.num_rows, passed_before)))
    rows = rows.append_column(CHANGELOG_FIELDS[2], pa.array(np.full(panes.num_rows, lateness)))
    watermark_row = {
        PANE_KIND_COLUMN: WATERMARK_KIND,
        PANE_CHANGE_COLUMN: 0,
        PANE_WATERMARK_COLUMN: passed_after,
        PANE_LATENESS_COLUMN: lateness,
        "batch_id": batch_time.batch_id,
    }
    return pa.concat_tables([rows.cast(schema), pa.Table.from_pylist([watermark_row], schema=schema)])


def clamp_to_event_time(watermark: int) -> int:
    """Return the watermark as a valid event time."""
    return {MIN_TIMESTAMP_MS: MIN_EVENT_TIME_MS, MAX_TIMESTAMP_MS: MAX_EVENT_TIME_MS}.get(
        watermark, watermark
    )
