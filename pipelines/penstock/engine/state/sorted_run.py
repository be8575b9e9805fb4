"""Sorted runs: the state changes of one or several batches, in one immutable file.

Rows are sorted by group, so a lookup is a binary search in a memory-mapped file. A group's rows in a younger
run replace all of its rows in older ones. A group that ended has one row marked `dropped`. Two indexes hold
the due times of rows, by event time and by clock, so that due rows are found without a scan.

A file is an Arrow file with a checksum line after it, which is verified when the file is opened.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.checksums import format_checksum_line, verify_checksum
from penstock.core.errors import DamagedFileError
from penstock.core.files import atomic_path
from penstock.engine.errors import DamagedEntryError
from penstock.engine.state.header_columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    BoolArray,
    HashArray,
    Int64Array,
    bool_column,
    hash_column,
    int_column,
)

DUE_INDEX_SCHEMA = pa.schema(
    [
        pa.field("event_times", pa.int64(), nullable=False),
        pa.field("event_rows", pa.uint32(), nullable=False),
        pa.field("clock_times", pa.int64(), nullable=False),
        pa.field("clock_rows", pa.uint32(), nullable=False),
    ]
)


@dataclass(frozen=True)
class GroupHashes:
    """Groups, as the two halves of their 128-bit hashes."""

    hi: HashArray
    lo: HashArray

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.hi)

    def select(self, selection: BoolArray | Int64Array) -> "GroupHashes":
        """Return some of the groups, in the same order."""
        return GroupHashes(self.hi[selection], self.lo[selection])


@dataclass(frozen=True)
class GroupMatches:
    """Matching rows of a run: row `row_positions[i]` belongs to wanted group `group_positions[i]`."""

    group_positions: Int64Array
    row_positions: Int64Array


class SortedRun:
    """One run, memory-mapped from its file. Opening it reads no rows."""

    def __init__(self, table: pa.Table, path: Path | None = None) -> None:
        self.path = path
        self._indexed_rows = table
        self._hi = hash_column(table, GROUP_HI)
        self._lo = hash_column(table, GROUP_LO)
        self._due_indexes = {
            DUE_EVENT: (int_column(table, "event_times"), int_column(table, "event_rows")),
            DUE_CLOCK: (int_column(table, "clock_times"), int_column(table, "clock_rows")),
        }

    def __len__(self) -> int:
        """Return the number of rows, those of ended groups included."""
        return len(self._hi)

    @property
    def table(self) -> pa.Table:
        """The rows, without the indexes."""
        return self._indexed_rows.select(
            [n for n in self._indexed_rows.column_names if n not in DUE_INDEX_SCHEMA.names]
        )

    def adapt_to_schema(self, schema: pa.Schema) -> "SortedRun":
        """Return the run in the given schema. Numbers are wrapped where it now stores lists of them."""
        indexed_rows = self._indexed_rows
        for index, field in enumerate(indexed_rows.schema):
            wanted_type = schema.field(field.name).type if field.name in schema.names else field.type
            if wanted_type != field.type and wanted_type == pa.list_(field.type):
                indexed_rows = indexed_rows.set_column(
                    index, field.name, _wrap_in_lists(indexed_rows.column(index))
                )
        return self if indexed_rows is self._indexed_rows else SortedRun(indexed_rows, self.path)

    @property
    def groups(self) -> GroupHashes:
        """The group of each row, in order."""
        return GroupHashes(self._hi, self._lo)

    def find_rows(self, wanted: GroupHashes) -> GroupMatches:
        """Return all rows of the wanted groups, those of ended groups included."""
        starts = np.searchsorted(self._hi, wanted.hi, side="left")
        # Most groups are in few runs, so search for the end only where a group starts.
        matching = (
            np.flatnonzero(self._hi[np.minimum(starts, len(self) - 1)] == wanted.hi)
            if len(self)
            else starts[:0]
        )
        ends = np.searchsorted(self._hi, wanted.hi[matching], side="right")
        counts = np.maximum(ends - starts[matching], 0)
        groups = np.repeat(matching, counts)
        rows = _concatenate_ranges(starts[matching], counts)
        is_same_group = self._lo[rows] == wanted.lo[groups]
        return GroupMatches(groups[is_same_group], rows[is_same_group])

    def find_due_rows(self, column: str, after: int, until: int) -> Int64Array:
        """Return the rows due in (after, until] by `column`.

        At the end of time, include rows that are never due.
        """
        times, rows = self._due_indexes[column]
        begin, end = np.searchsorted(times, [after, until], side="right")
        due_rows: Int64Array = rows[begin:end].astype(np.int64)
        return due_rows[~self.dropped_mask(due_rows)] if until == MAX_TIMESTAMP_MS else due_rows

    def count_due_rows(self, column: str, after: int, until: int) -> int:
        """Return the number of rows due in (after, until], without reading them."""
        begin, end = np.searchsorted(self._due_indexes[column][0], [after, until], side="right")
        return int(end - begin)

    def next_due_time(self, column: str, after: int) -> int:
        """Return the earliest due time after a time, or MAX_TIMESTAMP_MS if there is none."""
        times, _ = self._due_indexes[column]
        index = int(np.searchsorted(times, after, side="right"))
        return int(times[index]) if index < len(times) else MAX_TIMESTAMP_MS

    def take_rows(self, rows: Int64Array) -> pa.Table:
        """Return rows by position, without the indexes."""
        return self.table.take(pa.array(rows)).combine_chunks()

    def dropped_mask(self, rows: Int64Array) -> BoolArray:
        """Return which of these rows mark an ended group."""
        return np.asarray(self._indexed_rows.column(DROPPED).take(pa.array(rows)).to_numpy())


def build_run_table(table: pa.Table) -> pa.Table:
    """Return the content of a run: the rows sorted by group, with the due-time indexes."""
    order = np.lexsort((hash_column(table, GROUP_LO), hash_column(table, GROUP_HI)))
    table = table.take(pa.array(order)).combine_chunks()
    for name, column in (("event", DUE_EVENT), ("clock", DUE_CLOCK)):
        times = np.where(bool_column(table, DROPPED), MAX_TIMESTAMP_MS, int_column(table, column))
        rows = np.argsort(times, kind="stable")
        table = table.append_column(DUE_INDEX_SCHEMA.field(f"{name}_times"), pa.array(times[rows]))
        table = table.append_column(DUE_INDEX_SCHEMA.field(f"{name}_rows"), pa.array(rows.astype(np.uint32)))
    return table


def merge_runs(runs: Sequence[SortedRun], *, includes_oldest: bool) -> pa.Table:
    """Merge adjacent runs, given from old to young. Keep only the youngest rows of each group.

    Rows of ended groups are removed only if no older run can hold the group.
    """
    schema = runs[-1].table.schema
    tables = [run.adapt_to_schema(schema).table for run in runs]
    table = pa.concat_tables(tables).combine_chunks()
    if not table.num_rows:
        return build_run_table(table)
    age = np.repeat(np.arange(len(runs), 0, -1), [t.num_rows for t in tables])
    hi, lo = hash_column(table, GROUP_HI), hash_column(table, GROUP_LO)
    order = np.lexsort((age, lo, hi))
    hi, lo, age = hi[order], lo[order], age[order]
    is_group_start = np.append(True, (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1]))
    youngest = age[is_group_start][np.cumsum(is_group_start) - 1]
    surviving = order[age == youngest]
    if includes_oldest:
        surviving = surviving[~bool_column(table, DROPPED)[surviving]]
    return build_run_table(table.take(pa.array(surviving)))


def write_run(table: pa.Table, path: Path) -> None:
    """Write a run's file atomically, with its checksum. It survives a power cut once it is synced."""
    with atomic_path(path) as partial:
        with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        with pa.memory_map(str(partial)) as source:
            checksum_line = format_checksum_line(source.read_buffer())
        with partial.open("ab") as file:
            file.write(checksum_line)


def open_run(path: Path) -> SortedRun:
    """Memory-map a run's file. Raises DamagedEntryError if it is torn or damaged."""
    if not path.stat().st_size:
        raise DamagedEntryError(path, "is empty, as after a power cut")
    with pa.memory_map(str(path)) as source:
        data = source.read_buffer()
    try:
        content = verify_checksum(path, data)
        return SortedRun(pa.ipc.open_file(data.slice(0, len(content))).read_all(), path)
    except DamagedFileError as damage:
        raise DamagedEntryError(path, damage.problem) from damage
    except (pa.ArrowException, ValueError) as error:
        raise DamagedEntryError(path, f"is damaged ({str(error).splitlines()[0]})") from error


def open_run_cached(path: Path) -> SortedRun:
    """Memory-map a run's file, or reuse an open run, whose pages are already read."""
    status = path.stat()
    return _open_run_version(path, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _open_run_version(path: Path, inode: int, changed_ns: int) -> SortedRun:
    """Open one version of a file. A rewritten file has another inode or time."""
    del inode, changed_ns
    return open_run(path)


def _wrap_in_lists(column: pa.ChunkedArray) -> pa.Array:
    """Wrap each number in a list. An infinite or NaN sum cannot be split into terms and becomes 0."""
    numbers = column.combine_chunks()
    finite = pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(0, numbers.type))
    return pa.ListArray.from_arrays(pa.array(np.arange(len(finite) + 1), pa.int32()), finite)


def _concatenate_ranges(range_starts: Int64Array, counts: Int64Array) -> Int64Array:
    """Return starts[0], starts[0]+1, … (counts[0] values), then the same from starts[1], and so on."""
    total = int(counts.sum())
    shifts = (
        np.repeat(range_starts - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        if total
        else range_starts[:0]
    )
    return shifts + np.arange(total)
