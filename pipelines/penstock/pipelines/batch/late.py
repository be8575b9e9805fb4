"""Records that came after their window was closed: looked up, and written down with by how much they missed."""

import numpy as np
import pyarrow as pa

from penstock.pipelines.batch.reading import Reading
from penstock.pipelines.batch.tables import late_columns
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.state.columns import NEVER
from penstock.pipelines.tables.columns import timestamps


def late_rows(stage: ReadyStage, refused: pa.Table, reading: Reading, moment: Moment) -> pa.Table:
    """A row for each record and window of the partials that were refused."""
    schema = late_columns(stage)
    if not refused.num_rows:
        return schema.empty_table()
    records = reading.late(_distinct(refused.select(stage.names.names)))
    nowhere = np.asarray(records.column("window_end").is_null())
    ends = np.asarray(records.column("window_end").fill_null(NEVER))
    closed = stage.closes_at(ends)
    missed = moment.watermark_before - np.minimum(closed, moment.watermark_before)
    columns = {name: records.column(name) for name in records.column_names}
    for name in ("event_time", "window_start", "window_end"):
        columns[name] = timestamps(columns[name])
    columns["watermark"] = timestamps(
        pa.chunked_array([np.full(len(ends), moment.watermark_before, np.int64)])
    )
    columns["missed_by_ms"] = pa.array(missed)
    reason = np.where(nowhere, "no_window", np.where(closed <= moment.watermark_before, "closed", "finished"))
    columns["reason"] = pa.array(reason, pa.string())
    return pa.table([columns[field.name] for field in schema], schema=schema)


def _distinct(windows: pa.Table) -> pa.Table:
    return windows.group_by(windows.column_names).aggregate([])
