"""A table with one row for each key and window: the newest value.

A batch reads the files that may hold a window it touched, removes the rows of these windows, and rewrites the rest
together with the new rows. There is a file for each span of time, or several for a span with many windows. So a
batch costs as much as the files it touches, and files of closed windows are not read. Maintenance may rewrite files
between batches, so only their statistics decide which files to read.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import read_parquet
from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.file_pruning import FilePruning, prune_files
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.engine.tables.table_documentation import TableDocumentation

PANE_ONLY_COLUMNS = ("kind",)
"""Columns of a pane that have no meaning in a table without retractions."""

FILE_SPLIT_ROWS = 65_536
"""A file with at least twice as many rows is split. A batch that touches one row rewrites about as many rows."""
MAX_PARALLEL_REWRITES = 4


@dataclass(frozen=True)
class RewriteGroup:
    """Files that are replaced together, the batch's rows that they may hold, and those that replace them."""

    paths: list[str]
    touched_rows: np.ndarray
    placed_rows: np.ndarray


class LatestTable(BatchTable):
    """A table of newest values. The key columns and the window bounds identify a row."""

    def __init__(
        self,
        path: StoragePath,
        schema: pa.Schema,
        application: str,
        key: list[str],
        span_us: int | None,
        split_rows: int = FILE_SPLIT_ROWS,
        documentation: TableDocumentation | None = None,
    ) -> None:
        super().__init__(path, schema, application, documentation)
        self._key = key
        self._window_columns = [*key, "window_start", "window_end"]
        self._span_us = span_us
        self._split_rows = split_rows
        self._dictionary_columns = [
            f.name for f in schema if f.name not in key and not pa.types.is_floating(f.type)
        ]

    def write(self, panes: pa.Table, batch_id: int, clock: int) -> TableChange:
        """Write the rows that a batch's panes change, into files that no table version names yet."""
        if not panes.num_rows:
            return TableChange()
        pruned = prune_files(self._list_files(), panes, self._key)
        groups = self._group_rewrites(pruned, panes)
        files: list[DataFile] = []

        def rewrite(group: RewriteGroup) -> None:
            for rows in self._split_into_files(self._merge_content(group, panes)):
                # A key occurs once in a window, so a dictionary of keys costs more than it saves.
                write_options = {"use_dictionary": self._dictionary_columns}
                files.append(self.write_file(rows, f"batch-{batch_id:012d}", clock, **write_options))

        try:
            with ThreadPoolExecutor(MAX_PARALLEL_REWRITES) as pool:
                list(pool.map(rewrite, groups))
        except Exception:
            self.discard(files)
            raise
        result_rows = pc.sum(pc.equal(panes.column("kind"), "insert")).as_py()
        return TableChange(files, [path for group in groups for path in group.paths], result_rows)

    def refresh_ahead(self) -> None:
        """Do nothing: `write` refreshes the table, and the commit uses the same version."""

    def _list_files(self) -> pa.Table:
        """Return the add actions of the newest version of the table."""
        with self._lock:
            self._refresh()
            return pa.table(self._table.get_add_actions(flatten=True))

    def _group_rewrites(self, pruned: FilePruning, panes: pa.Table) -> list[RewriteGroup]:
        """Return the rewrites of a batch: one for each full file, and one for all small files and new rows."""
        is_unplaced, is_in_small, small_files = (
            np.ones(panes.num_rows, bool),
            np.zeros(panes.num_rows, bool),
            [],
        )
        groups = []
        for file, rows in pruned.iter_candidates():
            if pruned.row_counts[file] < self._split_rows:
                small_files.append(file)
                is_in_small[rows] = True
            else:
                groups.append(RewriteGroup([pruned.paths[file]], rows, rows[is_unplaced[rows]]))
                is_unplaced[rows] = False
        small_files += self._small_files_in_spans(pruned, small_files, is_unplaced)
        return [
            *groups,
            RewriteGroup(
                [pruned.paths[file] for file in small_files],
                np.flatnonzero(is_in_small),
                np.flatnonzero(is_unplaced),
            ),
        ]

    def _small_files_in_spans(
        self, pruned: FilePruning, chosen_files: list[int], is_unplaced: np.ndarray
    ) -> list[int]:
        """Return small files in the spans of new rows, to rewrite them too: else each batch would add one more.

        A file whose windows all end before the touched ones is not included: maintenance may be merging it.
        """
        starts, ends = pruned.starts, pruned.ends
        new_spans = np.unique(_span_numbers(starts.row_values[is_unplaced], self._span_us))
        is_small = (pruned.row_counts < self._split_rows) & (ends.maximums >= ends.row_values.min())
        is_small &= np.isin(_span_numbers(starts.minimums, self._span_us), new_spans)
        is_small &= np.isin(_span_numbers(starts.maximums, self._span_us), new_spans)
        is_small[chosen_files] = False
        return np.flatnonzero(is_small).tolist()

    def _merge_content(self, group: RewriteGroup, panes: pa.Table) -> pa.Table:
        """Return the rows of these files without the touched windows, plus the new rows."""
        touched_windows = panes.select(self._window_columns).take(pa.array(group.touched_rows))
        remaining = [
            _remove_windows(
                read_parquet(self.path / path, self.schema), touched_windows, self._window_columns
            )
            for path in group.paths
        ]
        newest = panes.take(pa.array(group.placed_rows))
        newest = newest.filter(pc.equal(newest.column("kind"), "insert")).select(self.schema.names)
        return pa.concat_tables([*remaining, newest.cast(self.schema)])

    def _split_into_files(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows of each file: one for each span of window starts, or several if the span has many rows."""
        for span_rows in _split_by_span(rows, self._span_us):
            yield from _cut_rows(span_rows, span_rows.num_rows // self._split_rows, self._key)


def to_latest_schema(panes: pa.Schema) -> pa.Schema:
    """Return the schema of a latest table for panes of this schema."""
    return pa.schema([field for field in panes if field.name not in PANE_ONLY_COLUMNS])


def _remove_windows(rows: pa.Table, touched_windows: pa.Table, window_columns: list[str]) -> pa.Table:
    """Return the rows of other windows than the touched ones; nulls are equal to nulls."""
    may_match = _may_match_windows(rows, touched_windows, window_columns)
    candidates = rows.filter(may_match)
    return pa.concat_tables(
        [
            rows.filter(pc.invert(may_match)),
            candidates.filter(~_match_windows(candidates, touched_windows, window_columns)),
        ]
    )


def _may_match_windows(
    rows: pa.Table, touched_windows: pa.Table, window_columns: list[str]
) -> pa.ChunkedArray:
    """Filter by single columns first, which is cheap; only the remaining rows are compared over all columns."""
    may_match = pa.chunked_array([pa.array(np.ones(rows.num_rows, bool))])
    for name in window_columns:
        data_type = rows.schema.field(name).type
        if (
            pa.types.is_integer(data_type)
            or pa.types.is_string(data_type)
            or pa.types.is_timestamp(data_type)
        ):
            may_match = pc.and_(
                may_match, pc.is_in(rows.column(name), touched_windows.column(name).unique().cast(data_type))
            )
    return may_match


def _match_windows(rows: pa.Table, touched_windows: pa.Table, window_columns: list[str]) -> pa.Array:
    """Return which rows belong to a touched window."""
    combined = pa.concat_tables(
        [touched_windows.select(window_columns), rows.select(window_columns)]
    ).combine_chunks()
    group_codes = np.zeros(combined.num_rows, np.int64)
    for name in window_columns:
        codes = combined.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
        _, group_codes = np.unique(
            group_codes * (len(codes.dictionary) + 1) + np.asarray(codes.indices), return_inverse=True
        )
    return np.isin(group_codes[touched_windows.num_rows :], group_codes[: touched_windows.num_rows])


def _split_by_span(rows: pa.Table, span_us: int | None) -> Iterator[pa.Table]:
    spans = _span_numbers(np.asarray(rows.column("window_start").cast(pa.int64()).fill_null(0)), span_us)
    if not rows.num_rows or (spans == spans[0]).all():
        yield from [rows] if rows.num_rows else []
        return
    order = np.argsort(spans, kind="stable")
    rows, edges = rows.take(pa.array(order)), np.flatnonzero(np.diff(spans[order])) + 1
    for start, end in pairwise([0, *edges.tolist(), rows.num_rows]):
        yield rows.slice(start, end - start)


def _cut_rows(rows: pa.Table, file_count: int, key: list[str]) -> Iterator[pa.Table]:
    """Split rows by window start, or by key if all starts are equal, so that statistics can prune the files."""
    if file_count > 1:
        start_bounds = pc.min_max(rows.column("window_start"))
        share_start = pc.equal(start_bounds["min"], start_bounds["max"]).as_py() is not False
        sort_columns = key[:1] if share_start and key else ["window_start"]
        rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in sort_columns]))
    for start, end in pairwise(
        rows.num_rows * file_number // max(file_count, 1) for file_number in range(max(file_count, 1) + 1)
    ):
        yield rows.slice(start, end - start)


def _span_numbers(starts: np.ndarray, span_us: int | None) -> np.ndarray:
    return np.zeros(len(starts), np.int64) if span_us is None else starts // span_us
