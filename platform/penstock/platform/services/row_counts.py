"""How many rows some batches of a stream wrote to each table that keeps all that it was given.

Of a table of newest values no table tells: what a batch wrote there is gone with the next one for the same window.
The control store does, of batches that were told with it (`control.reports.rows_given`).
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.engine.plan import FinalPanes, PaneLog, Plan
from penstock.engine.storage import StoragePath
from penstock.engine.tables.table_paths import result_path
from penstock.quality.audit.table_reads import open_table
from penstock.quality.errors import DamagedTableError

BATCH_COLUMN = "batch_id"


def count_rows_written(
    warehouse: StoragePath, plan: Plan, first_batch: int, last_batch: int
) -> Mapping[str, int]:
    """Return the rows of these batches in each table that is only added to; none for one that cannot be read."""
    row_counts = {}
    for table_path in (
        result_path(sink)
        for stage in plan.stages
        for sink in stage.sinks
        if isinstance(sink, PaneLog | FinalPanes)
    ):
        try:
            table = open_table(warehouse / table_path)
            if table is not None:
                row_counts[table_path] = _count_table_rows(table, first_batch, last_batch)
        except (DamagedTableError, OSError, pa.ArrowException):
            continue  # the audit is who says it; what is told of the run is true without it
    return row_counts


def _count_table_rows(table: DeltaTable, first_batch: int, last_batch: int) -> int:
    """Count by what files say of themselves; those that hold other batches as well, or do not tell, are read."""
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
