"""The state of all stages of a stream: one tree and one folder per stage, changed together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.state import state_tree
from penstock.engine.state.compaction import TreeCompactor
from penstock.engine.state.file_names import new_run_name
from penstock.engine.state.header_columns import DUE_CLOCK, DUE_EVENT, MAX_TIMESTAMP_MS
from penstock.engine.state.state_tree import StateTree

StateTrees = Mapping[str, StateTree]
"""The state of each stage, by the stage's name."""


class StageStates:
    """The state of each stage. Trees are immutable; `adopt` selects the current ones."""

    def __init__(self, graph: CompiledGraph, directory: Path) -> None:
        self._columns = {stage.plan.name: stage.state_schema for stage in graph.stages}
        self._event_time_stages = [
            stage.plan.name for stage in graph.stages if not stage.uses_processing_time
        ]
        self._folders = {name: directory / name for name in self._columns}
        for folder in self._folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        self._compactors = {name: TreeCompactor(folder) for name, folder in self._folders.items()}
        self.trees: StateTrees = {
            name: state_tree.create_empty_tree(columns) for name, columns in self._columns.items()
        }

    def stage_folder(self, stage: str) -> Path:
        """Return the folder of a stage's files."""
        return self._folders[stage]

    def write_changes(
        self, outcomes: Mapping[str, StageResult], batch_id: int, written_runs: Mapping[str, Sequence[str]]
    ) -> StateTrees:
        """Write the changes of a batch to files that nothing references yet, and return the new state.

        The files of stages in `written_runs` exist already.
        """
        new_trees = {}
        for name, tree in self.trees.items():
            folder = self._folders[name]
            if name in written_runs:
                changed_tree = tree.with_files([folder / run for run in written_runs[name]])
            else:
                changed_tree = tree.with_run(outcomes[name].changed_state, folder / new_run_name(batch_id))
            new_trees[name] = self._compactors[name].compact(changed_tree)
        return new_trees

    def adopt(self, new_trees: StateTrees) -> None:
        """Continue from this state."""
        self.trees = new_trees

    def open_trees(self, files_by_stage: Mapping[str, Sequence[str]]) -> StateTrees:
        """Open the state that an outcome references."""
        return {
            name: state_tree.open_tree(columns, self._folders[name], files_by_stage[name])
            for name, columns in self._columns.items()
        }

    def next_due_clock(self, after: int) -> int:
        """Return the next clock at which a timer of some stage is due; see StateTree.next_due_time."""
        return min(tree.next_due_time(DUE_CLOCK, after) for tree in self.trees.values())

    def next_event_time(self, after: int) -> int:
        """Return the next watermark at which some stage has something to do; see StateTree.next_due_time."""
        return min(
            (self.trees[name].next_due_time(DUE_EVENT, after) for name in self._event_time_stages),
            default=MAX_TIMESTAMP_MS,
        )

    def is_merging(self) -> bool:
        """Whether a merge is running, whose file no tree references yet."""
        return any(compactor.is_merging() for compactor in self._compactors.values())

    def list_files(self) -> Iterator[tuple[str, Path]]:
        """Return every file and its stage, referenced by an outcome or not."""
        return ((name, path) for name, folder in self._folders.items() for path in folder.glob("*run-*"))
