"""The panes of a batch as they go to a topic: what each says, which change it is, and how far time has passed."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.changes import are_changes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.plan.relaying import CHANGE, KIND, LATENESS, PASSED
from penstock.pipelines.plan.timeliness import corrects_for
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

WATERMARK = "watermark"
"""The kind of the record that ends a batch."""

EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: what stands for the ends of time where an event time is wanted."""

OURS = (pa.field(CHANGE, pa.int64()), pa.field(PASSED, pa.int64()), pa.field(LATENESS, pa.int64()))


def published_columns(stage: ReadyStage) -> pa.Schema:
    """What is published of a stage: its panes, and what a reader needs to take them for changes."""
    return pa.schema([*stage.pane_columns, *OURS])


def published(stage: ReadyStage, outcome: Outcome, moment: Moment) -> pa.Table:
    """The panes of a batch in order, and a last row that says how far time has passed; nothing without news."""
    panes, schema = outcome.panes, published_columns(stage)
    if not panes.num_rows and moment.watermark == moment.watermark_before:
        return schema.empty_table()
    inserted = np.asarray(pc.equal(panes.column(KIND), "insert"))
    change = np.where(are_changes(outcome), np.where(inserted, 1, -1), 0)
    lateness, before, after = (
        corrects_for(stage.plan),
        finite(moment.watermark_before),
        finite(moment.watermark),
    )
    rows = panes.append_column(OURS[0], pa.array(change))
    rows = rows.append_column(OURS[1], pa.array(np.full(panes.num_rows, before)))
    rows = rows.append_column(OURS[2], pa.array(np.full(panes.num_rows, lateness)))
    end = {KIND: WATERMARK, CHANGE: 0, PASSED: after, LATENESS: lateness, "batch_id": moment.batch_id}
    return pa.concat_tables([rows.cast(schema), pa.Table.from_pylist([end], schema=schema)])


def finite(watermark: int) -> int:
    """A watermark as an event time."""
    return {BEFORE_ALL: EARLIEST, NEVER: LATEST}.get(watermark, watermark)
