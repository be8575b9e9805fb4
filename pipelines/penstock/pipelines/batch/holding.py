"""The state of all stages of a stream: a tree and a folder for each, changed together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.touched import Outcome as Folded
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import DUE_CLOCK, DUE_EVENT, NEVER
from penstock.pipelines.state.names import run_name
from penstock.pipelines.state.tree import Tree
from penstock.pipelines.state.upkeep import Upkeep

Trees = Mapping[str, Tree]
"""The state of each stage, by the stage's name."""


class Holding:
    """Where the stages of a stream keep what they know. Trees are values; `adopt` says which of them stand."""

    def __init__(self, graph: ReadyGraph, directory: Path) -> None:
        self._columns = {stage.plan.name: stage.state_columns for stage in graph.stages}
        self._by_events = [stage.plan.name for stage in graph.stages if not stage.by_the_clock]
        self._folders = {name: directory / name for name in self._columns}
        for folder in self._folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        self._upkeep = {name: Upkeep(folder) for name, folder in self._folders.items()}
        self.trees: Trees = {name: trees.empty(columns) for name, columns in self._columns.items()}

    @property
    def rows(self) -> int:
        """How many rows all stages keep, superseded ones included."""
        return sum(tree.rows for tree in self.trees.values())

    def folder(self, stage: str) -> Path:
        """Where the files of a stage are."""
        return self._folders[stage]

    def after(
        self, folded: Mapping[str, Folded], batch_id: int, written: Mapping[str, Sequence[str]]
    ) -> Trees:
        """Write what a batch changes into files that nobody names yet, and return the state that it leads to.

        Of stages in `written` the files are there already.
        """
        after = {}
        for name, tree in self.trees.items():
            folder = self._folders[name]
            if name in written:
                changed = tree.with_files([folder / run for run in written[name]])
            else:
                changed = tree.with_run(folded[name].changed, folder / run_name(batch_id))
            after[name] = self._upkeep[name].tended(changed)
        return after

    def adopt(self, after: Trees) -> None:
        """Go on from a state."""
        self.trees = after

    def opened(self, files: Mapping[str, Sequence[str]]) -> Trees:
        """The state that an outcome names."""
        return {
            name: trees.opened(columns, self._folders[name], files[name])
            for name, columns in self._columns.items()
        }

    def next_due(self, after: int) -> int:
        """The next clock at which some stage has something to do; see Tree.next_due."""
        return min(tree.next_due(DUE_CLOCK, after) for tree in self.trees.values())

    def next_event(self, after: int) -> int:
        """The next watermark at which some stage has something to do; see Tree.next_due."""
        return min((self.trees[name].next_due(DUE_EVENT, after) for name in self._by_events), default=NEVER)

    def at_work(self) -> bool:
        """Whether a merge is under way, whose file no tree names yet."""
        return any(upkeep.at_work() for upkeep in self._upkeep.values())

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every file that there is, named by an outcome or not, and of which stage it is."""
        return ((name, path) for name, folder in self._folders.items() for path in folder.glob("run-*"))
