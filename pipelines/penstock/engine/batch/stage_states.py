"""The state of all stages of a stream: a tree and a folder for each, changed together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.windowed.window_update import StageResult as Folded
from penstock.engine.state import state_tree as trees
from penstock.engine.state.compaction import TreeCompactor
from penstock.engine.state.file_names import new_run_name
from penstock.engine.state.header_columns import DUE_CLOCK, DUE_EVENT, MAX_TIMESTAMP_MS
from penstock.engine.state.state_tree import StateTree

StateTrees = Mapping[str, StateTree]
"""The state of each stage, by the stage's name."""


class StageStates:
    """Where the stages of a stream keep what they know. Trees are values; `adopt` says which of them stand."""

    def __init__(self, graph: CompiledGraph, directory: Path) -> None:
        self._columns = {stage.plan.name: stage.state_schema for stage in graph.stages}
        self._event_time_stages = [
            stage.plan.name for stage in graph.stages if not stage.uses_processing_time
        ]
        self._folders = {name: directory / name for name in self._columns}
        for folder in self._folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        self._upkeep = {name: TreeCompactor(folder) for name, folder in self._folders.items()}
        self.trees: StateTrees = {
            name: trees.create_empty_tree(columns) for name, columns in self._columns.items()
        }

    @property
    def rows(self) -> int:
        """How many rows all stages keep, superseded ones included."""
        return sum(tree.row_count for tree in self.trees.values())

    def stage_folder(self, stage: str) -> Path:
        """Where the files of a stage are."""
        return self._folders[stage]

    def write_changes(
        self, outcomes: Mapping[str, Folded], batch_id: int, written_runs: Mapping[str, Sequence[str]]
    ) -> StateTrees:
        """Write what a batch changes into files that nobody names yet, and return the state that it leads to.

        Of stages in `written` the files are there already.
        """
        new_trees = {}
        for name, tree in self.trees.items():
            folder = self._folders[name]
            if name in written_runs:
                changed_tree = tree.with_files([folder / run for run in written_runs[name]])
            else:
                changed_tree = tree.with_run(outcomes[name].changed_state, folder / new_run_name(batch_id))
            new_trees[name] = self._upkeep[name].compact(changed_tree)
        return new_trees

    def adopt(self, new_trees: StateTrees) -> None:
        """Go on from a state."""
        self.trees = new_trees

    def open_trees(self, files_by_stage: Mapping[str, Sequence[str]]) -> StateTrees:
        """The state that an outcome names."""
        return {
            name: trees.open_tree(columns, self._folders[name], files_by_stage[name])
            for name, columns in self._columns.items()
        }

    def next_due_clock(self, after: int) -> int:
        """The next clock at which some stage has something to do; see Tree.next_due."""
        return min(tree.next_due_time(DUE_CLOCK, after) for tree in self.trees.values())

    def next_event_time(self, after: int) -> int:
        """The next watermark at which some stage has something to do; see Tree.next_due."""
        return min(
            (self.trees[name].next_due_time(DUE_EVENT, after) for name in self._event_time_stages),
            default=MAX_TIMESTAMP_MS,
        )

    def is_merging(self) -> bool:
        """Whether a merge is under way, whose file no tree names yet."""
        return any(upkeep.is_merging() for upkeep in self._upkeep.values())

    def list_files(self) -> Iterator[tuple[str, Path]]:
        """Every file that there is, named by an outcome or not, and of which stage it is."""
        return ((name, path) for name, folder in self._folders.items() for path in folder.glob("*run-*"))
