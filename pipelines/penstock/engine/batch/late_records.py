"""Builds the rows of late records: each record, its window, and by how much it missed it."""

import numpy as np
import pyarrow as pa

from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.record_schemas import late_record_schema
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.group_hashes import hash_keys, hash_windows
from penstock.engine.operators.windowed.window_update import find_positions
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.state.sorted_run import GroupHashes
from penstock.engine.tables.timestamps import to_timestamps


def build_late_rows(
    stage: CompiledStage, refused_windows: pa.Table, batch_input: BatchInput, batch_time: BatchTime
) -> pa.Table:
    """Return a row for each record that a window refused; `refused_windows` are these windows."""
    schema = late_record_schema(stage)
    if not refused_windows.num_rows:
        return schema.empty_table()
    records = batch_input.read_late_records(
        _distinct_windows(refused_windows.select(stage.window_schema.names))
    )
    if stage.has_merging_windows:
        records = _assign_session_bounds(stage, records, refused_windows)
    has_no_window = np.asarray(records.column("window_end").is_null())
    ends = np.asarray(records.column("window_end").fill_null(MAX_TIMESTAMP_MS))
    close_times = stage.closes_at(ends)
    missed_by = batch_time.watermark_before - np.minimum(close_times, batch_time.watermark_before)
    columns = {name: records.column(name) for name in records.column_names}
    for name in ("event_time", "window_start", "window_end"):
        columns[name] = to_timestamps(columns[name])
    columns["watermark"] = to_timestamps(
        pa.chunked_array([np.full(len(ends), batch_time.watermark_before, np.int64)])
    )
    columns["missed_by_ms"] = pa.array(missed_by)
    reason = np.where(
        has_no_window, "no_window", np.where(close_times <= batch_time.watermark_before, "closed", "finished")
    )
    columns["reason"] = pa.array(reason, pa.string())
    return pa.table([columns[field.name] for field in schema], schema=schema)


def _assign_session_bounds(stage: CompiledStage, records: pa.Table, refused_windows: pa.Table) -> pa.Table:
    """Replace each record's window by the session that refused it."""
    pieces = _window_groups(stage, refused_windows)
    order = np.lexsort((pieces.lo, pieces.hi))
    session_rows = order[find_positions(pieces.select(order), _window_groups(stage, records))]
    for bound in ("start", "end"):
        column_index = records.schema.get_field_index(f"window_{bound}")
        session_bound = refused_windows.column(f"missed_{bound}").take(pa.array(session_rows))
        records = records.set_column(column_index, f"window_{bound}", session_bound)
    return records


def _window_groups(stage: CompiledStage, rows: pa.Table) -> GroupHashes:
    keys = hash_keys([rows.column(field.name) for field in stage.key], rows.num_rows)
    start, end = (to_numpy(rows.column(f"window_{bound}")) for bound in ("start", "end"))
    return hash_windows(keys, start, end)


def _distinct_windows(windows: pa.Table) -> pa.Table:
    return windows.group_by(windows.column_names).aggregate([])
