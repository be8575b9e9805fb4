"""The state of a stage, or of one hash part of it: its runs, from old to young.

A tree is immutable: `with_run` and `compact` return new trees over the same files. A batch that fails leaves
the previous tree untouched, and a stream can roll back to any batch whose outcome is retained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.engine.state.compaction_policy import plan_merge
from penstock.engine.state.file_names import new_merged_name
from penstock.engine.state.hash_parts import select_part_groups
from penstock.engine.state.header_columns import (
    MAX_TIMESTAMP_MS,
    STATE_HEADER,
    Int64Array,
)
from penstock.engine.state.sorted_run import (
    GroupHashes,
    SortedRun,
    build_run_table,
    merge_runs,
    open_run,
    open_run_cached,
    write_run,
)


@dataclass(frozen=True)
class StateTree:
    """Runs from old to young, with one schema."""

    schema: pa.Schema
    runs: tuple[SortedRun, ...] = ()
    part: int | None = None
    """The hash part to which `find_due_groups` is limited; None for the whole state."""

    @property
    def row_count(self) -> int:
        """The number of rows in all runs, superseded ones included."""
        return sum(len(run) for run in self.runs)

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        return sum(run.path.stat().st_size for run in self.runs if run.path is not None)

    def look_up_groups(self, wanted: GroupHashes) -> tuple[pa.Table, Int64Array]:
        """Return the rows of the wanted groups, and for each row the position of its group in `wanted`."""
        pieces: list[pa.Table] = []
        positions: list[Int64Array] = []
        missing = np.arange(len(wanted))
        for run in reversed(self.runs):
            if not len(missing):
                break
            matches = run.find_rows(wanted.select(missing))
            alive = ~run.dropped_mask(matches.row_positions)
            pieces.append(run.take_rows(matches.row_positions[alive]))
            positions.append(missing[matches.group_positions[alive]])
            missing = np.delete(missing, np.unique(matches.group_positions))
        return _concat_tables(pieces, self.schema), _concat_arrays(positions)

    def find_due_groups(self, column: str, after: int, until: int) -> GroupHashes:
        """Return the groups with a row due in (after, until], each once, in order.

        `after` must be the time of the last call whose outcome was committed. Rows due before it count as
        processed.
        """
        due_groups: list[GroupHashes] = []
        for position, run in enumerate(self.runs):
            groups = run.groups.select(np.sort(run.find_due_rows(column, after, until)))
            if self.part is not None:
                groups = select_part_groups(groups, self.part)
            for younger in self.runs[position + 1 :] if len(groups) else ():
                superseded = np.unique(younger.find_rows(groups).group_positions)
                groups = groups.select(np.delete(np.arange(len(groups)), superseded))
            due_groups.append(groups)
        return distinct_groups(
            [group_hashes.hi for group_hashes in due_groups], [group_hashes.lo for group_hashes in due_groups]
        )

    def count_due_rows(self, column: str, after: int, until: int) -> int:
        """Return an upper bound on the rows due in (after, until]. It counts superseded rows, too."""
        return sum(run.count_due_rows(column, after, until) for run in self.runs)

    def next_due_time(self, column: str, after: int) -> int:
        """Return the earliest due time after a time, or MAX_TIMESTAMP_MS.

        A superseded row may make it too early.
        """
        return min((run.next_due_time(column, after) for run in self.runs), default=MAX_TIMESTAMP_MS)

    def with_run(self, changed_rows: pa.Table, path: Path) -> "StateTree":
        """Return the tree after a batch. `changed_rows` holds all rows of each group that the batch changed."""
        if not changed_rows.num_rows:
            return self
        write_run(build_run_table(changed_rows.cast(self.schema)), path)
        return self.with_files([path])

    def with_files(self, paths: Sequence[Path]) -> "StateTree":
        """Return the tree after a batch whose changes another process wrote."""
        return StateTree(self.schema, (*self.runs, *(open_run(path) for path in paths)))

    def compact(self, directory: Path) -> "StateTree":
        """Merge runs where due, and return the tree."""
        tree = self
        while (span := plan_merge([len(run) for run in tree.runs])) is not None:
            begin, end = span
            tree = tree.with_merged(begin, end, tree.merge_runs(begin, end, directory))
        return tree

    def merge_runs(self, begin: int, end: int, directory: Path) -> SortedRun:
        """Merge adjacent runs into a new file, and return the run. The tree does not change."""
        merged = merge_runs(self.runs[begin:end], includes_oldest=begin == 0)
        names = [run.path.name for run in self.runs[begin:end] if run.path is not None]
        path = directory / new_merged_name(names[0], names[-1])
        write_run(merged, path)
        return open_run(path)

    def with_merged(self, begin: int, end: int, run: SortedRun) -> "StateTree":
        """Return the tree with one run in place of those merged into it."""
        return StateTree(self.schema, (*self.runs[:begin], run, *self.runs[end:]))

    def list_file_names(self) -> list[str]:
        """Return the names of the runs' files, from old to young, as an outcome stores them."""
        return [run.path.name for run in self.runs if run.path is not None]


def create_empty_tree(columns: pa.Schema) -> StateTree:
    """Return a state without rows. `columns` come after the header columns."""
    return StateTree(pa.schema([*STATE_HEADER, *columns]))


def open_tree(
    columns: pa.Schema, directory: Path, files: Sequence[str], part: int | None = None
) -> StateTree:
    """Open the tree that an outcome names. For a hash part, reuse runs that this process opened before."""
    open_file = open_run if part is None else open_run_cached
    schema = create_empty_tree(columns).schema
    return StateTree(
        schema, tuple(open_file(directory / name).adapt_to_schema(schema) for name in files), part
    )


def distinct_groups(hi: Sequence[np.ndarray], lo: Sequence[np.ndarray]) -> GroupHashes:
    """Concatenate groups, and return each once, in order."""
    halves = np.stack([_concat_arrays(hi, np.uint64), _concat_arrays(lo, np.uint64)])
    order = np.lexsort((halves[1], halves[0]))
    halves = halves[:, order]
    is_first = np.ones(halves.shape[1], bool)
    is_first[1:] = (halves[:, 1:] != halves[:, :-1]).any(axis=0)
    return GroupHashes(halves[0, is_first], halves[1, is_first])


def _concat_tables(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(pieces).combine_chunks() if pieces else schema.empty_table()


def _concat_arrays(arrays: Sequence[np.ndarray], dtype: type = np.int64) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
