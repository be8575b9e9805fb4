"""A table with the complete result in one file, which each batch with changes rewrites.

The file holds the newest value of every key and window, so the result can be copied or served as a single file.
A batch costs as much as the whole result, while a batch of a latest table costs as much as the files it touches.
So use this for small results.
"""

import numpy as np
import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.tables.file_pruning import FilePruning
from penstock.engine.tables.latest_table import LatestTable, RewriteGroup
from penstock.engine.tables.table_documentation import TableDocumentation

UNLIMITED_ROWS = 2**62
"""More rows than any result has, so that the file is never split."""


class CompleteResultTable(LatestTable):
    """A table that a batch replaces as a whole. The key columns and the window bounds identify a row."""

    def __init__(
        self,
        path: StoragePath,
        schema: pa.Schema,
        application: str,
        key: list[str],
        documentation: TableDocumentation | None = None,
    ) -> None:
        super().__init__(
            path,
            schema,
            application,
            key,
            span_us=None,
            split_rows=UNLIMITED_ROWS,
            documentation=documentation,
        )

    def _group_rewrites(self, pruned: FilePruning, panes: pa.Table) -> list[RewriteGroup]:
        all_rows = np.arange(panes.num_rows)
        return [RewriteGroup(list(pruned.paths), all_rows, all_rows)]
