"""Keeping a tree's runs few without keeping a batch waiting.

Merging a few small runs takes no time worth speaking of and is done at once. A big merge runs beside the batches;
the tree that comes after its end takes its run in place of those it was made of. What is merged is immutable, so a
merge that is lost with its process is only begun again.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.state.compaction_policy import plan_merge
from penstock.engine.state.sorted_run import SortedRun
from penstock.engine.state.state_tree import StateTree

MAX_INLINE_MERGE_ROWS = 100_000
"""Rows up to which a merge takes a few hundredths of a second."""

MAX_RUNS = 60
"""So many runs a lookup may have to ask; a merge is waited for rather than let them be more."""


@dataclass(frozen=True)
class _PendingMerge:
    """A merge at work: the runs that become one."""

    runs: tuple[SortedRun, ...]
    future_run: "Future[SortedRun]"


class TreeCompactor:
    """Merges the runs of one tree, as it changes from batch to batch."""

    def __init__(
        self, directory: Path, max_inline_rows: int = MAX_INLINE_MERGE_ROWS, max_runs: int = MAX_RUNS
    ) -> None:
        self._directory = directory
        self._max_inline_rows = max_inline_rows
        self._max_runs = max_runs
        self._worker = ThreadPoolExecutor(1, "merging")
        self._pending_merge: _PendingMerge | None = None

    def compact(self, tree: StateTree) -> StateTree:
        """The same state, with what is due merged, or being merged."""
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
        """Whether a merge is under way, whose file no tree names yet."""
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
        """What is to be merged, of the runs that are younger than those being merged."""
        skipped = 0
        if self._pending_merge is not None:
            begin = _find_runs(tree, self._pending_merge.runs)
            skipped = 0 if begin is None else begin + len(self._pending_merge.runs)
        span = plan_merge([len(run) for run in tree.runs[skipped:]])
        return None if span is None else (span[0] + skipped, span[1] + skipped)


def _find_runs(tree: StateTree, runs: tuple[SortedRun, ...]) -> int | None:
    """Where these runs stand in the tree; None where it does not have them, as after a step back."""
    names = [run.path for run in tree.runs]
    wanted = [run.path for run in runs]
    positions = [index for index in range(len(names)) if names[index : index + len(wanted)] == wanted]
    return positions[0] if positions else None
