"""Finds the files of a table that may hold the windows of a batch, by the files' statistics alone.

A file is pruned only if its bounds prove that it holds none of the windows. Missing statistics, for nulls or for
types without bounds, prove nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NumberArray = np.ndarray
UNKNOWN_MINIMUM, UNKNOWN_MAXIMUM = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class ColumnBounds:
    """One column as numbers that keep its order: the bounds of each file, and the value of each touched row."""

    minimums: NumberArray
    maximums: NumberArray
    row_values: NumberArray
    is_null: NumberArray
    """Which rows are null; bounds say nothing about nulls."""

    def select_candidates(self, file: int, rows: NumberArray) -> NumberArray:
        """Return the rows that a file may hold."""
        value = self.row_values[rows]
        is_inside: NumberArray = self.is_null[rows] | (
            (self.minimums[file] <= value) & (value <= self.maximums[file])
        )
        return np.asarray(rows[is_inside])


@dataclass(frozen=True)
class FilePruning:
    """The files of a table, with the bounds that show which rows of a batch each may hold."""

    paths: Sequence[str]
    row_counts: NumberArray
    starts: ColumnBounds
    ends: ColumnBounds
    keys: ColumnBounds | None

    def iter_candidates(self) -> Iterator[tuple[int, NumberArray]]:
        """Yield each file that may hold any of the rows, with these rows."""
        null_rows = np.flatnonzero(self.starts.is_null)
        bounded_rows = np.flatnonzero(~self.starts.is_null)
        bounded_rows = bounded_rows[np.argsort(self.starts.row_values[bounded_rows], kind="stable")]
        starts_at = np.searchsorted(self.starts.row_values[bounded_rows], self.starts.minimums, side="left")
        ends_at = np.searchsorted(self.starts.row_values[bounded_rows], self.starts.maximums, side="right")
        for file in np.flatnonzero((ends_at > starts_at) | (len(null_rows) > 0)).tolist():
            rows = self.ends.select_candidates(
                file, np.concatenate([bounded_rows[starts_at[file] : ends_at[file]], null_rows])
            )
            rows = rows if self.keys is None else self.keys.select_candidates(file, rows)
            if len(rows):
                yield file, rows


def prune_files(files: pa.Table, rows: pa.Table, key: Sequence[str]) -> FilePruning:
    """Compare the flattened add actions of a table's files with rows that name windows of a key."""
    starts, ends = (_time_bounds(files, rows, name) for name in ("window_start", "window_end"))
    keys = _key_bounds(files, rows, key[0]) if key and files.num_rows else None
    paths = [str(path) for path in files.column("path").to_pylist()]
    counts = files.column("num_records").fill_null(UNKNOWN_MAXIMUM)
    return FilePruning(paths, np.asarray(counts), starts, ends, keys)


def _time_bounds(files: pa.Table, rows: pa.Table, name: str) -> ColumnBounds:
    minimums, maximums = (
        _cast_column(files, f"{bound}.{name}", rows.schema.field(name).type) for bound in ("min", "max")
    )
    return _to_column_bounds(
        *(column.cast(pa.int64()) for column in (minimums, maximums, _combine_chunks(rows, name)))
    )


def _key_bounds(files: pa.Table, rows: pa.Table, name: str) -> ColumnBounds | None:
    data_type = rows.schema.field(name).type
    if not pa.types.is_integer(data_type) and not pa.types.is_string(data_type):
        return None
    minimums, maximums = (_cast_column(files, f"{bound}.{name}", data_type) for bound in ("min", "max"))
    if pa.types.is_integer(data_type):
        return _to_column_bounds(
            *(column.cast(pa.int64()) for column in (minimums, maximums, _combine_chunks(rows, name)))
        )
    file_count, row_values = files.num_rows, _combine_chunks(rows, name)
    all_values = pa.concat_arrays([minimums, maximums, row_values])
    ranks = pc.rank(all_values, tiebreaker="dense").cast(pa.int64())
    ranks = pc.if_else(all_values.is_null(), pa.scalar(None, pa.int64()), ranks)
    return _to_column_bounds(ranks[:file_count], ranks[file_count : 2 * file_count], ranks[2 * file_count :])


def _to_column_bounds(minimums: pa.Array, maximums: pa.Array, rows: pa.Array) -> ColumnBounds:
    return ColumnBounds(
        np.asarray(minimums.fill_null(UNKNOWN_MINIMUM)),
        np.asarray(maximums.fill_null(UNKNOWN_MAXIMUM)),
        np.asarray(rows.fill_null(0)),
        np.asarray(rows.is_null()),
    )


def _cast_column(files: pa.Table, name: str, data_type: pa.DataType) -> pa.Array:
    if name not in files.column_names:
        return pa.nulls(files.num_rows, data_type)
    return _combine_chunks(files, name).cast(data_type)


def _combine_chunks(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
