"""How many rows some batches of a stream wrote to each table that keeps all that it was given.

Of a table of newest values no table tells: what a batch wrote there is gone with the next one for the same window.
The control store does, of batches that were told with it (`control.reports.rows_given`).
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.pipelines.plan import FinalPanes, PaneLog, Plan
from penstock.pipelines.store import Place
from penstock.pipelines.tables.places import result_of
from penstock.quality.audit.tables import opened_table
from penstock.quality.errors import DamagedTableError

BATCH = "batch_id"


def rows_written(warehouse: Place, plan: Plan, first: int, last: int) -> Mapping[str, int]:
    """Return the rows of these batches in each table that is only added to; none for one that cannot be read."""
    found = {}
    for about in (
        result_of(sink)
        for stage in plan.stages
        for sink in stage.sinks
        if isinstance(sink, PaneLog | FinalPanes)
    ):
        try:
            table = opened_table(warehouse / about)
            if table is not None:
                found[about] = _rows_of(table, first, last)
        except (DamagedTableError, OSError, pa.ArrowException):
            continue  # the audit is who says it; what is told of the run is true without it
    return found


def _rows_of(table: DeltaTable, first: int, last: int) -> int:
    """Count by what files say of themselves; those that hold other batches as well, or do not tell, are read."""
    files = pa.table(table.get_add_actions(flatten=True))
    counted, read = 0, set()
    for file in files.to_pylist():
        low, high = file.get(f"min.{BATCH}"), file.get(f"max.{BATCH}")
        if low is None or high is None or low < first <= high or low <= last < high:
            read.add(file["path"])
        elif first <= low <= last:
            counted += file["num_records"]
    for fragment in table.to_pyarrow_dataset().get_fragments():
        if fragment.path in read:
            batches = fragment.to_table(columns=[BATCH]).column(BATCH)
            inside = pc.and_(pc.greater_equal(batches, first), pc.less_equal(batches, last))
            counted += pc.sum(inside).as_py() or 0
    return counted
