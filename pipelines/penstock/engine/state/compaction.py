"""Keep the number of runs low without delaying batches.

Small merges run immediately. A big merge runs in the background; the first tree after its end uses the merged
run in place of its inputs. Inputs are immutable, so a merge that is lost with its process simply starts
again.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.state.compaction_policy import plan_merge
from penstock.engine.state.sorted_run import SortedRun
from penstock.engine.state.state_tree import StateTree

MAX_INLINE_MERGE_ROWS = 100_000
"""A merge of up to this many rows takes a few hundredths of a second."""

MAX_RUNS = 60
"""The highest number of runs that a lookup may search. Beyond it, the batch waits for the merge."""


@dataclass(frozen=True)
class _PendingMerge:
    """A merge in the background, and the runs that it replaces."""

    runs: tuple[SortedRun, ...]
    future_run: "Future[SortedRun]"


class TreeCompactor:
    """Merges the runs of one tree as it changes from batch to batch."""

    def __init__(
        self, directory: Path, max_inline_rows: int = MAX_INLINE_MERGE_ROWS, max_runs: int = MAX_RUNS
    ) -> None:
        self._directory = directory
        self._max_inline_rows = max_inline_rows
        self._max_runs = max_runs
        self._worker = ThreadPoolExecutor(1, "merging")
        self._pending_merge: _PendingMerge | None = None

    def compact(self, tree: StateTree) -> StateTree:
        """Return the same state with due merges done or started."""
        tree = self._adopt_finished_merge(tree, should_wait=len(tree.runs) > self._max_runs)
        while (span := self._plan_next_merge(tree)) is not None:
            begin, end = span
            if sum(len(run) for run in tree.runs[begin:end]) <= self._max_inline_rows:
                tree = tree.with_merged(begin, end, tree.merge_runs(begin, end, self._directory))
            elif self._pending_merge is None:
                self._pending_merge = _PendingMerge(
                    tree.runs[begin:end], self._worker.submit(tree.merge_runs, begin, end, self._directory)
                )
            else:
                break
        return tree

    def is_merging(self) -> bool:
        """Return whether a merge is running whose file no tree names yet."""
        return self._pending_merge is not None

    def _adopt_finished_merge(self, tree: StateTree, *, should_wait: bool) -> StateTree:
        pending = self._pending_merge
        if pending is None or not (should_wait or pending.future_run.done()):
            return tree
        self._pending_merge = None
        run = pending.future_run.result()
        begin = _find_runs(tree, pending.runs)
        return tree if begin is None else tree.with_merged(begin, begin + len(pending.runs), run)

    def _plan_next_merge(self, tree: StateTree) -> tuple[int, int] | None:
        """Return the next runs to merge, among those younger than the pending merge."""
        skipped = 0
        if self._pending_merge is not None:
            begin = _find_runs(tree, self._pending_merge.runs)
            skipped = 0 if begin is None else begin + len(self._pending_merge.runs)
        span = plan_merge([len(run) for run in tree.runs[skipped:]])
        return None if span is None else (span[0] + skipped, span[1] + skipped)


def _find_runs(tree: StateTree, runs: tuple[SortedRun, ...]) -> int | None:
    """Return the position of these runs in the tree, or None if it lacks them, as after a rollback."""
    names = [run.path for run in tree.runs]
    wanted = [run.path for run in runs]
    positions = [index for index in range(len(names)) if names[index : index + len(wanted)] == wanted]
    return positions[0] if positions else None
