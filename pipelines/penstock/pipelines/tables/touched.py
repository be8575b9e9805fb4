"""Which files of a table may hold the windows that a batch touched, told by the files' statistics alone.

A file is left out only where its bounds prove that it holds none of them. What the statistics do not say, of nulls
or of types that have no bounds there, proves nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray
UNKNOWN_LEAST, UNKNOWN_MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class Bounds:
    """One column as numbers in its own order: of each file the least and the most, and of each touched row."""

    least: Numbers
    most: Numbers
    rows: Numbers
    null: Numbers
    """Which rows have none: no bound tells of them."""

    def may_be_in(self, file: int, rows: Numbers) -> Numbers:
        """Which of these rows a file may hold."""
        value = self.rows[rows]
        inside: Numbers = self.null[rows] | ((self.least[file] <= value) & (value <= self.most[file]))
        return np.asarray(rows[inside])


@dataclass(frozen=True)
class Touched:
    """The files of a table, and where in them the rows of a batch may be."""

    paths: Sequence[str]
    counts: Numbers
    starts: Bounds
    ends: Bounds
    keys: Bounds | None

    def hits(self) -> Iterator[tuple[int, Numbers]]:
        """Each file that may hold any of the rows, and which."""
        nowhere = np.flatnonzero(self.starts.null)
        known = np.flatnonzero(~self.starts.null)
        known = known[np.argsort(self.starts.rows[known], kind="stable")]
        begin = np.searchsorted(self.starts.rows[known], self.starts.least, side="left")
        end = np.searchsorted(self.starts.rows[known], self.starts.most, side="right")
        for file in np.flatnonzero((end > begin) | (len(nowhere) > 0)).tolist():
            rows = self.ends.may_be_in(file, np.concatenate([known[begin[file] : end[file]], nowhere]))
            rows = rows if self.keys is None else self.keys.may_be_in(file, rows)
            if len(rows):
                yield file, rows


def touched_files(files: pa.Table, rows: pa.Table, key: Sequence[str]) -> Touched:
    """Compare the entries of a table's files, flattened, with rows that name windows of a key."""
    starts, ends = (_times(files, rows, name) for name in ("window_start", "window_end"))
    keys = _bounds(files, rows, key[0]) if key and files.num_rows else None
    paths = [str(path) for path in files.column("path").to_pylist()]
    counts = files.column("num_records").fill_null(UNKNOWN_MOST)
    return Touched(paths, np.asarray(counts), starts, ends, keys)


def _times(files: pa.Table, rows: pa.Table, name: str) -> Bounds:
    least, most = (_column(files, f"{end}.{name}", rows.schema.field(name).type) for end in ("min", "max"))
    return _numbered(*(column.cast(pa.int64()) for column in (least, most, _whole(rows, name))))


def _bounds(files: pa.Table, rows: pa.Table, name: str) -> Bounds | None:
    kind = rows.schema.field(name).type
    if not pa.types.is_integer(kind) and not pa.types.is_string(kind):
        return None
    least, most = (_column(files, f"{end}.{name}", kind) for end in ("min", "max"))
    if pa.types.is_integer(kind):
        return _numbered(*(column.cast(pa.int64()) for column in (least, most, _whole(rows, name))))
    count, mine = files.num_rows, _whole(rows, name)
    together = pa.concat_arrays([least, most, mine])
    ranks = pc.rank(together, tiebreaker="dense").cast(pa.int64())
    ranks = pc.if_else(together.is_null(), pa.scalar(None, pa.int64()), ranks)
    return _numbered(ranks[:count], ranks[count : 2 * count], ranks[2 * count :])


def _numbered(least: pa.Array, most: pa.Array, rows: pa.Array) -> Bounds:
    return Bounds(
        np.asarray(least.fill_null(UNKNOWN_LEAST)),
        np.asarray(most.fill_null(UNKNOWN_MOST)),
        np.asarray(rows.fill_null(0)),
        np.asarray(rows.is_null()),
    )


def _column(files: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if name not in files.column_names:
        return pa.nulls(files.num_rows, kind)
    return _whole(files, name).cast(kind)


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
