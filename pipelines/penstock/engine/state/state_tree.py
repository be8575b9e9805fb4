"""The state of a stage (or of one hash partition of it): its runs, from old to young, and what they answer.

A tree is a value: `with_run` and `compacted` give new trees over the same immutable files, so a batch that
fails leaves the tree before it untouched, and any batch whose manifest is kept can be gone back to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.engine.state import sorted_run as runs_of
from penstock.engine.state.compaction_policy import plan_merge
from penstock.engine.state.file_names import new_merged_name
from penstock.engine.state.hash_parts import select_part_groups
from penstock.engine.state.header_columns import (
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    STATE_HEADER,
    Int64Array,
    hash_column,
)
from penstock.engine.state.sorted_run import GroupHashes, SortedRun


@dataclass(frozen=True)
class StateTree:
    """Runs from old to young, and the schema that all of them have."""

    schema: pa.Schema
    runs: tuple[SortedRun, ...] = ()
    part: int | None = None
    """The part of the state to which what is due is limited; None for all of it."""

    @property
    def row_count(self) -> int:
        """How many rows the runs hold, superseded ones included."""
        return sum(len(run) for run in self.runs)

    @property
    def size_bytes(self) -> int:
        """How much its files take."""
        return sum(run.path.stat().st_size for run in self.runs if run.path is not None)

    def look_up_groups(self, wanted: GroupHashes) -> tuple[pa.Table, Int64Array]:
        """The rows of the wanted groups, and for each row the position of its group in `wanted`."""
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
        """Groups with a row whose due time lies in (after, until], each once, in order.

        `after` must be the moment of the last call of which the outcome was written: rows due before it are
        taken to have been dealt with.
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
        """How many rows are due between two moments at most: superseded ones are counted, too."""
        return sum(run.count_due_rows(column, after, until) for run in self.runs)

    def next_due_time(self, column: str, after: int) -> int:
        """The earliest due time after a moment, or an earlier one of a row that was superseded; NEVER for none."""
        return min((run.next_due_time(column, after) for run in self.runs), default=MAX_TIMESTAMP_MS)

    def with_run(self, changed_rows: pa.Table, path: Path) -> "StateTree":
        """The tree after a batch that wrote `changed`: all rows of each group that it touched."""
        if not changed_rows.num_rows:
            return self
        runs_of.write_run(runs_of.build_run_table(changed_rows.cast(self.schema)), path)
        return self.with_files([path])

    def with_files(self, paths: Sequence[Path]) -> "StateTree":
        """The tree after a batch whose changes were written elsewhere."""
        return StateTree(self.schema, (*self.runs, *(runs_of.open_run(path) for path in paths)))

    def compact(self, directory: Path) -> "StateTree":
        """The same state in fewer runs, where that is due."""
        tree = self
        while (span := plan_merge([len(run) for run in tree.runs])) is not None:
            begin, end = span
            tree = tree.with_merged(begin, end, tree.merge_runs(begin, end, directory))
        return tree

    def merge_runs(self, begin: int, end: int, directory: Path) -> SortedRun:
        """Adjacent runs as one, in a file; nothing of the tree changes."""
        merged = runs_of.merge_runs(self.runs[begin:end], includes_oldest=begin == 0)
        names = [run.path.name for run in self.runs[begin:end] if run.path is not None]
        path = directory / new_merged_name(names[0], names[-1])
        runs_of.write_run(merged, path)
        return runs_of.open_run(path)

    def with_merged(self, begin: int, end: int, run: SortedRun) -> "StateTree":
        """The same state with one run in place of those that were merged into it."""
        return StateTree(self.schema, (*self.runs[:begin], run, *self.runs[end:]))

    def list_file_names(self) -> list[str]:
        """The names of the runs' files, from old to young: what a manifest keeps."""
        return [run.path.name for run in self.runs if run.path is not None]


def create_empty_tree(columns: pa.Schema) -> StateTree:
    """A state without rows, of a stage that keeps `columns` beside those that every state has."""
    return StateTree(pa.schema([*STATE_HEADER, *columns]))


def open_tree(
    columns: pa.Schema, directory: Path, files: Sequence[str], part: int | None = None
) -> StateTree:
    """The tree that a manifest names; who folds a part has mostly folded one of the batch before."""
    open_file = runs_of.open_run if part is None else runs_of.open_run_cached
    schema = create_empty_tree(columns).schema
    return StateTree(
        schema, tuple(open_file(directory / name).adapt_to_schema(schema) for name in files), part
    )


def distinct_groups(hi: Sequence[np.ndarray], lo: Sequence[np.ndarray]) -> GroupHashes:
    """Groups from several places, each once, in order."""
    halves = np.stack([_concat_arrays(hi, np.uint64), _concat_arrays(lo, np.uint64)])
    order = np.lexsort((halves[1], halves[0]))
    halves = halves[:, order]
    is_first = np.ones(halves.shape[1], bool)
    is_first[1:] = (halves[:, 1:] != halves[:, :-1]).any(axis=0)
    return GroupHashes(halves[0, is_first], halves[1, is_first])


def distinct_table_groups(table: pa.Table) -> GroupHashes:
    """The groups of a table's rows, each once, in order."""
    return distinct_groups([hash_column(table, GROUP_HI)], [hash_column(table, GROUP_LO)])


def _concat_tables(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(pieces).combine_chunks() if pieces else schema.empty_table()


def _concat_arrays(arrays: Sequence[np.ndarray], dtype: type = np.int64) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
