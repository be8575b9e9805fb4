"""The state of a stage (or of one hash partition of it): its runs, from old to young, and what they answer.

A tree is a value: `with_run` and `compacted` give new trees over the same immutable files, so a batch that
fails leaves the tree before it untouched, and any batch whose manifest is kept can be gone back to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.pipelines.state import run as runs_of
from penstock.pipelines.state.columns import GROUP_HI, GROUP_LO, HEADER, NEVER, Ints, hashes
from penstock.pipelines.state.merging import plan_merge
from penstock.pipelines.state.names import merged_name
from penstock.pipelines.state.parts import within
from penstock.pipelines.state.run import Groups, Run


@dataclass(frozen=True)
class Tree:
    """Runs from old to young, and the schema that all of them have."""

    schema: pa.Schema
    runs: tuple[Run, ...] = ()
    part: int | None = None
    """The part of the state to which what is due is limited; None for all of it."""

    @property
    def rows(self) -> int:
        """How many rows the runs hold, superseded ones included."""
        return sum(len(run) for run in self.runs)

    @property
    def bytes(self) -> int:
        """How much its files take."""
        return sum(run.path.stat().st_size for run in self.runs if run.path is not None)

    def lookup(self, wanted: Groups) -> tuple[pa.Table, Ints]:
        """The rows of the wanted groups, and for each row the position of its group in `wanted`."""
        pieces: list[pa.Table] = []
        positions: list[Ints] = []
        missing = np.arange(len(wanted))
        for run in reversed(self.runs):
            if not len(missing):
                break
            found = run.find(wanted.where(missing))
            alive = ~run.dropped(found.rows)
            pieces.append(run.take(found.rows[alive]))
            positions.append(missing[found.groups[alive]])
            missing = np.delete(missing, np.unique(found.groups))
        return _joined(pieces, self.schema), _concatenated(positions)

    def due(self, column: str, after: int, until: int) -> Groups:
        """Groups with a row whose due time lies in (after, until], each once, in order.

        `after` must be the moment of the last call of which the outcome was written: rows due before it are
        taken to have been dealt with.
        """
        found: list[Groups] = []
        for position, run in enumerate(self.runs):
            groups = run.groups.where(np.sort(run.due(column, after, until)))
            if self.part is not None:
                groups = within(groups, self.part)
            for younger in self.runs[position + 1 :] if len(groups) else ():
                superseded = np.unique(younger.find(groups).groups)
                groups = groups.where(np.delete(np.arange(len(groups)), superseded))
            found.append(groups)
        return distinct([g.hi for g in found], [g.lo for g in found])

    def due_rows(self, column: str, after: int, until: int) -> int:
        """How many rows are due between two moments at most: superseded ones are counted, too."""
        return sum(run.due_rows(column, after, until) for run in self.runs)

    def next_due(self, column: str, after: int) -> int:
        """The earliest due time after a moment, or an earlier one of a row that was superseded; NEVER for none."""
        return min((run.next_due(column, after) for run in self.runs), default=NEVER)

    def with_run(self, changed: pa.Table, path: Path) -> "Tree":
        """The tree after a batch that wrote `changed`: all rows of each group that it touched."""
        if not changed.num_rows:
            return self
        runs_of.write(runs_of.build(changed.cast(self.schema)), path)
        return self.with_files([path])

    def with_files(self, paths: Sequence[Path]) -> "Tree":
        """The tree after a batch whose changes were written elsewhere."""
        return Tree(self.schema, (*self.runs, *(runs_of.read(path) for path in paths)))

    def compacted(self, directory: Path) -> "Tree":
        """The same state in fewer runs, where that is due."""
        tree = self
        while (span := plan_merge([len(run) for run in tree.runs])) is not None:
            begin, end = span
            tree = tree.with_merged(begin, end, tree.merge(begin, end, directory))
        return tree

    def merge(self, begin: int, end: int, directory: Path) -> Run:
        """Adjacent runs as one, in a file; nothing of the tree changes."""
        merged = runs_of.merge(self.runs[begin:end], oldest=begin == 0)
        names = [run.path.name for run in self.runs[begin:end] if run.path is not None]
        path = directory / merged_name(names[0], names[-1])
        runs_of.write(merged, path)
        return runs_of.read(path)

    def with_merged(self, begin: int, end: int, run: Run) -> "Tree":
        """The same state with one run in place of those that were merged into it."""
        return Tree(self.schema, (*self.runs[:begin], run, *self.runs[end:]))

    def files(self) -> list[str]:
        """The names of the runs' files, from old to young: what a manifest keeps."""
        return [run.path.name for run in self.runs if run.path is not None]


def empty(columns: pa.Schema) -> Tree:
    """A state without rows, of a stage that keeps `columns` beside those that every state has."""
    return Tree(pa.schema([*HEADER, *columns]))


def opened(columns: pa.Schema, directory: Path, files: Sequence[str], part: int | None = None) -> Tree:
    """The tree that a manifest names; who folds a part has mostly folded one of the batch before."""
    read = runs_of.read if part is None else runs_of.read_again
    schema = empty(columns).schema
    return Tree(schema, tuple(read(directory / name).fitted(schema) for name in files), part)


def distinct(hi: Sequence[np.ndarray], lo: Sequence[np.ndarray]) -> Groups:
    """Groups from several places, each once, in order."""
    both = np.stack([_concatenated(hi, np.uint64), _concatenated(lo, np.uint64)])
    order = np.lexsort((both[1], both[0]))
    both = both[:, order]
    first = np.ones(both.shape[1], bool)
    first[1:] = (both[:, 1:] != both[:, :-1]).any(axis=0)
    return Groups(both[0, first], both[1, first])


def groups_of(table: pa.Table) -> Groups:
    """The groups of a table's rows, each once, in order."""
    return distinct([hashes(table, GROUP_HI)], [hashes(table, GROUP_LO)])


def _joined(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(pieces).combine_chunks() if pieces else schema.empty_table()


def _concatenated(arrays: Sequence[np.ndarray], dtype: type = np.int64) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
