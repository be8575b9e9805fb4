"""Tables with one row per key and window: the newest value.

A batch replaces files: those that may hold a window it touched are read, the rows of touched windows are taken
out, and what remains is written anew together with the new rows, a file for each span of time. So a batch costs
what lies in the spans that it touches, and windows that are long closed are not looked at. Any file may be
rewritten by somebody else between batches: which ones to look into is told by their statistics alone.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.store import Place
from penstock.pipelines.store.files import read_rows
from penstock.pipelines.tables.change import Change, DataFile
from penstock.pipelines.tables.table import BatchTable

SHOWN_ONCE = ("kind",)
"""Columns of a pane that say nothing in a table without retractions."""


class LatestTable(BatchTable):
    """A table of newest values. `identity` are the columns that name a window of a key."""

    def __init__(
        self, path: Place, schema: pa.Schema, application: str, key: list[str], span_us: int | None
    ) -> None:
        super().__init__(path, schema, application)
        self._identity = [*key, "window_start", "window_end"]
        self._span_us = span_us

    def write(self, panes: pa.Table, batch_id: int, clock: int) -> Change:
        """Write what becomes of the table by a batch's panes, into files that it does not name yet."""
        if not panes.num_rows:
            return Change()
        self._table.update_incremental()
        paths = self._files_with(panes.column("window_start"))
        kept = [self._untouched(path, panes) for path in paths]
        newest = panes.filter(pc.equal(panes.column("kind"), "insert")).select(self.schema.names)
        rows = pa.concat_tables([*kept, newest.cast(self.schema)])
        return Change(self._in_spans(rows, batch_id, clock), paths)

    def _files_with(self, starts: pa.ChunkedArray) -> list[str]:
        """Files that may hold a window which begins at one of these times."""
        files = pa.table(self._table.get_add_actions(flatten=True))
        wanted = np.unique(np.asarray(starts.cast(pa.int64()).drop_null()))
        if "min.window_start" not in files.column_names:
            return [str(path) for path in files.column("path").to_pylist()]
        least, most = (_microseconds(files.column(f"{end}.window_start")) for end in ("min", "max"))
        any_inside = np.searchsorted(wanted, most, side="right") > np.searchsorted(wanted, least, side="left")
        unknown = np.asarray(files.column("min.window_start").is_null())
        return [
            str(p)
            for p, hit in zip(files.column("path").to_pylist(), any_inside | unknown, strict=True)
            if hit
        ]

    def _untouched(self, path: str, panes: pa.Table) -> pa.Table:
        rows = read_rows(self.path / path, self.schema)
        return _without(rows, panes, self._identity)

    def _in_spans(self, rows: pa.Table, batch_id: int, clock: int) -> list[DataFile]:
        """A file for each span of time in which windows begin."""
        spans = _spans(rows.column("window_start"), self._span_us)
        order = np.argsort(spans, kind="stable")
        rows, spans = rows.take(pa.array(order)), spans[order]
        edges = np.flatnonzero(np.diff(spans)) + 1
        bounds = [0, *edges.tolist(), rows.num_rows] if rows.num_rows else []
        files: list[DataFile] = []
        try:
            for part, (begin, end) in enumerate(pairwise(bounds)):
                span = rows.slice(begin, end - begin)
                files.append(self.write_file(span, f"batch-{batch_id:012d}-{part:05d}", clock))
        except Exception:
            self.discard(files)
            raise
        return files


def latest_schema(panes: pa.Schema) -> pa.Schema:
    """The schema of a table of newest values over panes of this schema."""
    return pa.schema([field for field in panes if field.name not in SHOWN_ONCE])


def _without(rows: pa.Table, touched: pa.Table, identity: list[str]) -> pa.Table:
    """The rows whose window is not among the touched; nulls are equal to nulls."""
    marked = pa.concat_tables([touched.select(identity), rows.select(identity)]).combine_chunks()
    group = np.zeros(marked.num_rows, np.int64)
    for name in identity:
        codes = marked.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
        _, group = np.unique(
            group * (len(codes.dictionary) + 1) + np.asarray(codes.indices), return_inverse=True
        )
    taken = np.isin(group[touched.num_rows :], group[: touched.num_rows])
    return rows.filter(pa.array(~taken))


def _spans(starts: pa.ChunkedArray, span_us: int | None) -> np.ndarray:
    if span_us is None:
        return np.zeros(len(starts), np.int64)
    return np.asarray(starts.cast(pa.int64()).fill_null(0)) // span_us


def _microseconds(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).fill_null(0))
