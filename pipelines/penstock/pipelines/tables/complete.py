"""Tables that hold the whole result, written anew by each batch that changes it.

One file holds the newest value of every key and window, so whoever copies or serves the result as a file takes
exactly one, whole. For that a batch costs what the result holds, where a table of newest values costs what lies
in the spans that it touches: this is for small results.
"""

import pyarrow as pa

from penstock.pipelines.store import Place
from penstock.pipelines.tables.latest import LatestTable


class CompleteTable(LatestTable):
    """A table that a batch replaces whole. `key` names, with the bounds, a window."""

    def __init__(self, path: Place, schema: pa.Schema, application: str, key: list[str]) -> None:
        super().__init__(path, schema, application, key, span_us=None)

    def _files_with(self, starts: pa.ChunkedArray) -> list[str]:
        return [str(path) for path in pa.table(self._table.get_add_actions()).column("path").to_pylist()]
