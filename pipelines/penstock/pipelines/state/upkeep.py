"""Keeping a tree's runs few without keeping a batch waiting.

Merging a few small runs takes no time worth speaking of and is done at once. A big merge runs beside the batches;
the tree that comes after its end takes its run in place of those it was made of. What is merged is immutable, so a
merge that is lost with its process is only begun again.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.pipelines.state.merging import plan_merge
from penstock.pipelines.state.run import Run
from penstock.pipelines.state.tree import Tree

AT_ONCE = 100_000
"""Rows up to which a merge takes a few hundredths of a second."""

MOST_RUNS = 60
"""So many runs a lookup may have to ask; a merge is waited for rather than let them be more."""


@dataclass(frozen=True)
class _Merge:
    """A merge at work: the runs that become one."""

    runs: tuple[Run, ...]
    result: "Future[Run]"


class Upkeep:
    """Merges the runs of one tree, as it changes from batch to batch."""

    def __init__(self, directory: Path, at_once: int = AT_ONCE, most_runs: int = MOST_RUNS) -> None:
        self._directory = directory
        self._at_once = at_once
        self._most_runs = most_runs
        self._worker = ThreadPoolExecutor(1, "merging")
        self._merge: _Merge | None = None

    def tended(self, tree: Tree) -> Tree:
        """The same state, with what is due merged, or being merged."""
        tree = self._adopted(tree, wait=len(tree.runs) > self._most_runs)
        while (span := self._due(tree)) is not None:
            begin, end = span
            if sum(len(run) for run in tree.runs[begin:end]) <= self._at_once:
                tree = tree.with_merged(begin, end, tree.merge(begin, end, self._directory))
            elif self._merge is None:
                self._merge = _Merge(
                    tree.runs[begin:end], self._worker.submit(tree.merge, begin, end, self._directory)
                )
            else:
                break
        return tree

    def at_work(self) -> bool:
        """Whether a merge is under way, whose file no tree names yet."""
        return self._merge is not None

    def _adopted(self, tree: Tree, *, wait: bool) -> Tree:
        merge = self._merge
        if merge is None or not (wait or merge.result.done()):
            return tree
        self._merge = None
        run = merge.result.result()
        begin = _position(tree, merge.runs)
        return tree if begin is None else tree.with_merged(begin, begin + len(merge.runs), run)

    def _due(self, tree: Tree) -> tuple[int, int] | None:
        """What is to be merged, of the runs that are younger than those being merged."""
        behind = 0
        if self._merge is not None:
            begin = _position(tree, self._merge.runs)
            behind = 0 if begin is None else begin + len(self._merge.runs)
        span = plan_merge([len(run) for run in tree.runs[behind:]])
        return None if span is None else (span[0] + behind, span[1] + behind)


def _position(tree: Tree, runs: tuple[Run, ...]) -> int | None:
    """Where these runs stand in the tree; None where it does not have them, as after a step back."""
    names = [run.path for run in tree.runs]
    wanted = [run.path for run in runs]
    found = [at for at in range(len(names)) if names[at : at + len(wanted)] == wanted]
    return found[0] if found else None
