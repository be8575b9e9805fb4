"""Tables with one row per key and window: the newest value.

A batch replaces files: those that may hold a window it touched are read, the rows of touched windows are taken
out, and what remains is written anew together with the new rows, a file for each span of time, and several for one
of many windows. So a batch costs the files that it touches, and windows that are long closed are not looked at. Any
file may be rewritten by somebody else between batches: which ones to look into is told by their statistics alone.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.store import Place
from penstock.pipelines.store.files import read_rows
from penstock.pipelines.tables.change import Change, DataFile
from penstock.pipelines.tables.table import BatchTable
from penstock.pipelines.tables.touched import Touched, touched_files

SHOWN_ONCE = ("kind",)
"""Columns of a pane that say nothing in a table without retractions."""

PIECE = 65_536
"""Rows from which a file is cut where it can be, and never below: what touches one row writes so many anew."""
AT_ONCE = 4


@dataclass(frozen=True)
class Part:
    """Files that are replaced together, which of the batch's rows may be in them, and which go where they were."""

    paths: list[str]
    touched: np.ndarray
    rows: np.ndarray


class LatestTable(BatchTable):
    """A table of newest values. `key` are the columns that name, with its bounds, a window."""

    def __init__(
        self,
        path: Place,
        schema: pa.Schema,
        application: str,
        key: list[str],
        span_us: int | None,
        piece: int = PIECE,
    ) -> None:
        super().__init__(path, schema, application)
        self._key = key
        self._identity = [*key, "window_start", "window_end"]
        self._span_us = span_us
        self._piece = piece
        self._repeated = [f.name for f in schema if f.name not in key and not pa.types.is_floating(f.type)]

    def write(self, panes: pa.Table, batch_id: int, clock: int) -> Change:
        """Write what becomes of the table by a batch's panes, into files that it does not name yet."""
        if not panes.num_rows:
            return Change()
        found = touched_files(self._files(), panes, self._key)
        parts = self._parts(found, panes)
        written: list[DataFile] = []

        def rewrite(part: Part) -> None:
            for rows in self._pieces(self._content(part, panes)):
                # Each key is once in a window: a dictionary of them costs more than it saves.
                how = {"use_dictionary": self._repeated}
                written.append(self.write_file(rows, f"batch-{batch_id:012d}", clock, **how))

        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(rewrite, parts))
        except Exception:
            self.discard(written)
            raise
        given = pc.sum(pc.equal(panes.column("kind"), "insert")).as_py()
        return Change(written, [path for part in parts for path in part.paths], given)

    def look_ahead(self) -> None:
        """Nothing: what a batch writes goes by what the table is then, and its commit goes by the same look."""

    def _files(self) -> pa.Table:
        """The files of the table as it is now."""
        with self._one_at_a_time:
            self._look()
            return pa.table(self._table.get_add_actions(flatten=True))

    def _parts(self, found: Touched, panes: pa.Table) -> list[Part]:
        """What is written anew together: each full file by itself, and all that is small or new."""
        new, in_small, small = np.ones(panes.num_rows, bool), np.zeros(panes.num_rows, bool), []
        parts = []
        for file, rows in found.hits():
            if found.counts[file] < self._piece:
                small.append(file)
                in_small[rows] = True
            else:
                parts.append(Part([found.paths[file]], rows, rows[new[rows]]))
                new[rows] = False
        small += self._beside(found, small, new)
        return [
            *parts,
            Part([found.paths[file] for file in small], np.flatnonzero(in_small), np.flatnonzero(new)),
        ]

    def _beside(self, found: Touched, hit: list[int], new: np.ndarray) -> list[int]:
        """Small files of the spans to which rows come that no full file takes: each batch would add one more.

        A file whose windows all end before any that was touched is left alone: maintenance may be merging it.
        """
        starts, ends = found.starts, found.ends
        spans = np.unique(_spans(starts.rows[new], self._span_us))
        small = (found.counts < self._piece) & (ends.most >= ends.rows.min())
        small &= np.isin(_spans(starts.least, self._span_us), spans)
        small &= np.isin(_spans(starts.most, self._span_us), spans)
        small[hit] = False
        return np.flatnonzero(small).tolist()

    def _content(self, part: Part, panes: pa.Table) -> pa.Table:
        """The rows of some files without the windows that were touched, and the newest of those."""
        touched = panes.select(self._identity).take(pa.array(part.touched))
        kept = [
            _without(read_rows(self.path / path, self.schema), touched, self._identity) for path in part.paths
        ]
        newest = panes.take(pa.array(part.rows))
        newest = newest.filter(pc.equal(newest.column("kind"), "insert")).select(self.schema.names)
        return pa.concat_tables([*kept, newest.cast(self.schema)])

    def _pieces(self, rows: pa.Table) -> Iterator[pa.Table]:
        """A file for each span of time in which windows begin; where they are many, several, each of a range."""
        for span in _by_span(rows, self._span_us):
            yield from _cut(span, span.num_rows // self._piece, self._key)


def latest_schema(panes: pa.Schema) -> pa.Schema:
    """The schema of a table of newest values over panes of this schema."""
    return pa.schema([field for field in panes if field.name not in SHOWN_ONCE])


def _without(rows: pa.Table, touched: pa.Table, identity: list[str]) -> pa.Table:
    """The rows whose window is not among the touched; nulls are equal to nulls."""
    maybe = _maybe_in(rows, touched, identity)
    some = rows.filter(maybe)
    return pa.concat_tables([rows.filter(pc.invert(maybe)), some.filter(~_same(some, touched, identity))])


def _maybe_in(rows: pa.Table, touched: pa.Table, identity: list[str]) -> pa.ChunkedArray:
    """A first look, column by column: where nothing fits there is no need to look at columns together."""
    maybe = pa.chunked_array([pa.array(np.ones(rows.num_rows, bool))])
    for name in identity:
        kind = rows.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_timestamp(kind):
            maybe = pc.and_(maybe, pc.is_in(rows.column(name), touched.column(name).unique().cast(kind)))
    return maybe


def _same(rows: pa.Table, touched: pa.Table, identity: list[str]) -> pa.Array:
    """Which rows are of a window that was touched."""
    marked = pa.concat_tables([touched.select(identity), rows.select(identity)]).combine_chunks()
    group = np.zeros(marked.num_rows, np.int64)
    for name in identity:
        codes = marked.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
        _, group = np.unique(
            group * (len(codes.dictionary) + 1) + np.asarray(codes.indices), return_inverse=True
        )
    return np.isin(group[touched.num_rows :], group[: touched.num_rows])


def _by_span(rows: pa.Table, span_us: int | None) -> Iterator[pa.Table]:
    spans = _spans(np.asarray(rows.column("window_start").cast(pa.int64()).fill_null(0)), span_us)
    if not rows.num_rows or (spans == spans[0]).all():
        yield from [rows] if rows.num_rows else []
        return
    order = np.argsort(spans, kind="stable")
    rows, edges = rows.take(pa.array(order)), np.flatnonzero(np.diff(spans[order])) + 1
    for begin, end in pairwise([0, *edges.tolist(), rows.num_rows]):
        yield rows.slice(begin, end - begin)


def _cut(rows: pa.Table, pieces: int, key: list[str]) -> Iterator[pa.Table]:
    """Cut by when windows begin, or those that begin together by their key, so that statistics tell them apart."""
    if pieces > 1:
        begins = pc.min_max(rows.column("window_start"))
        together = pc.equal(begins["min"], begins["max"]).as_py() is not False
        by = key[:1] if together and key else ["window_start"]
        rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in by]))
    for begin, end in pairwise(rows.num_rows * part // max(pieces, 1) for part in range(max(pieces, 1) + 1)):
        yield rows.slice(begin, end - begin)


def _spans(starts: np.ndarray, span_us: int | None) -> np.ndarray:
    return np.zeros(len(starts), np.int64) if span_us is None else starts // span_us
