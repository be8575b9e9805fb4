"""Tables that hold the whole result, written anew by each batch that changes it.

One file holds the newest value of every key and window, so whoever copies or serves the result as a file takes
exactly one, whole. For that a batch costs what the result holds, where a table of newest values costs what lies
in the spans that it touches: this is for small results.
"""

import numpy as np
import pyarrow as pa

from penstock.pipelines.store import Place
from penstock.pipelines.tables.latest import LatestTable, Part
from penstock.pipelines.tables.touched import Touched

ALL = 2**62
"""No result has so many rows: one that is to be in one file is never cut."""


class CompleteTable(LatestTable):
    """A table that a batch replaces whole. `key` names, with the bounds, a window."""

    def __init__(self, path: Place, schema: pa.Schema, application: str, key: list[str]) -> None:
        super().__init__(path, schema, application, key, span_us=None, piece=ALL)

    def _parts(self, found: Touched, panes: pa.Table) -> list[Part]:
        every = np.arange(panes.num_rows)
        return [Part(list(found.paths), every, every)]
