"""Tables that hold the whole result, written anew by each batch that changes it.

One file holds the newest value of every key and window, so whoever copies or serves the result as a file takes
exactly one, whole. For that a batch costs what the result holds, where a table of newest values costs what lies
in the spans that it touches: this is for small results.
"""

import numpy as np
import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.tables.file_pruning import FilePruning
from penstock.engine.tables.latest_table import LatestTable, RewriteGroup

UNLIMITED_ROWS = 2**62
"""No result has so many rows: one that is to be in one file is never cut."""


class CompleteResultTable(LatestTable):
    """A table that a batch replaces whole. `key` names, with the bounds, a window."""

    def __init__(self, path: StoragePath, schema: pa.Schema, application: str, key: list[str]) -> None:
        super().__init__(path, schema, application, key, span_us=None, split_rows=UNLIMITED_ROWS)

    def _group_rewrites(self, pruned: FilePruning, panes: pa.Table) -> list[RewriteGroup]:
        all_rows = np.arange(panes.num_rows)
        return [RewriteGroup(list(pruned.paths), all_rows, all_rows)]
