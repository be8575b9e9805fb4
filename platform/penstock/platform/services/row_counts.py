"""Row counts of a stream's batches in its append-only tables.

A table of latest values cannot answer this, because a later batch replaces the rows of an earlier one. For such
tables, the control store has the counts (`control.reports.count_result_rows`).
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.quality.errors import DamagedTableError
from penstock.quality.table_reads import open_table

BATCH_COLUMN = "batch_id"


def count_rows_written(
    warehouse: StoragePath, plan: Plan, first_batch: int, last_batch: int
) -> Mapping[str, int]:
    """Return the row counts of these batches by append-only table, without tables that cannot be read."""
    row_counts = {}
    for table_path in (
        sink.path
        for stage in plan.stages
        for sink in stage.sinks
        if sink.is_delta_table and sink.content is not PaneContent.LATEST
    ):
        try:
            table = open_table(warehouse / table_path)
            if table is not None:
                row_counts[table_path] = _count_table_rows(table, first_batch, last_batch)
        except (DamagedTableError, OSError, pa.ArrowException):
            continue  # the audit reports unreadable tables; the other counts are still correct
    return row_counts


def _count_table_rows(table: DeltaTable, first_batch: int, last_batch: int) -> int:
    """Count rows from file statistics; read the files that have no statistics or also contain other batches."""
    files = pa.table(table.get_add_actions(flatten=True))
    row_count, paths_to_read = 0, set()
    for file in files.to_pylist():
        min_batch, max_batch = file.get(f"min.{BATCH_COLUMN}"), file.get(f"max.{BATCH_COLUMN}")
        if (
            min_batch is None
            or max_batch is None
            or min_batch < first_batch <= max_batch
            or min_batch <= last_batch < max_batch
        ):
            paths_to_read.add(file["path"])
        elif first_batch <= min_batch <= last_batch:
            row_count += file["num_records"]
    for fragment in table.to_pyarrow_dataset().get_fragments():
        if fragment.path in paths_to_read:
            batches = fragment.to_table(columns=[BATCH_COLUMN]).column(BATCH_COLUMN)
            in_range = pc.and_(pc.greater_equal(batches, first_batch), pc.less_equal(batches, last_batch))
            row_count += pc.sum(in_range).as_py() or 0
    return row_count
