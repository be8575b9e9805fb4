"""Records that came after their window was closed: looked up, and written down with by how much they missed."""

import numpy as np
import pyarrow as pa

from penstock.pipelines.batch.reading import Reading
from penstock.pipelines.batch.tables import late_columns
from penstock.pipelines.fold.identity import key_hashes, window_hashes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import position_in
from penstock.pipelines.state.columns import NEVER
from penstock.pipelines.state.run import Groups
from penstock.pipelines.tables.columns import timestamps


def late_rows(stage: ReadyStage, missed: pa.Table, reading: Reading, moment: Moment) -> pa.Table:
    """A row for each record that a window refused; `missed` is what the fold says of these windows."""
    schema = late_columns(stage)
    if not missed.num_rows:
        return schema.empty_table()
    records = reading.late(_distinct(missed.select(stage.names.names)))
    if stage.merges:
        records = _in_sessions(stage, records, missed)
    nowhere = np.asarray(records.column("window_end").is_null())
    ends = np.asarray(records.column("window_end").fill_null(NEVER))
    closed = stage.closes_at(ends)
    missed_by = moment.watermark_before - np.minimum(closed, moment.watermark_before)
    columns = {name: records.column(name) for name in records.column_names}
    for name in ("event_time", "window_start", "window_end"):
        columns[name] = timestamps(columns[name])
    columns["watermark"] = timestamps(
        pa.chunked_array([np.full(len(ends), moment.watermark_before, np.int64)])
    )
    columns["missed_by_ms"] = pa.array(missed_by)
    reason = np.where(nowhere, "no_window", np.where(closed <= moment.watermark_before, "closed", "finished"))
    columns["reason"] = pa.array(reason, pa.string())
    return pa.table([columns[field.name] for field in schema], schema=schema)


def _in_sessions(stage: ReadyStage, records: pa.Table, missed: pa.Table) -> pa.Table:
    """Give each record the bounds of the session that refused it, in place of those of the piece it came in."""
    pieces = _groups(stage, missed)
    order = np.lexsort((pieces.lo, pieces.hi))
    session = order[position_in(pieces.where(order), _groups(stage, records))]
    for bound in ("start", "end"):
        at = records.schema.get_field_index(f"window_{bound}")
        refused_by = missed.column(f"missed_{bound}").take(pa.array(session))
        records = records.set_column(at, f"window_{bound}", refused_by)
    return records


def _groups(stage: ReadyStage, rows: pa.Table) -> Groups:
    keys = key_hashes([rows.column(field.name) for field in stage.key], rows.num_rows)
    start, end = (numpy_column(rows.column(f"window_{bound}")) for bound in ("start", "end"))
    return window_hashes(keys, start, end)


def _distinct(windows: pa.Table) -> pa.Table:
    return windows.group_by(windows.column_names).aggregate([])
