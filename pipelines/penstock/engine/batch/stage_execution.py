"""Processes the stages of one batch, on the driver or in parts on executors, with the same result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from penstock.engine.batch.batch_input import (
    BatchInput,
    RemotePartials,
    RemotePartialsInput,
    select_window_partials,
)
from penstock.engine.batch.part_execution import CombinedParts, PartTask, combine_parts, split_refused
from penstock.engine.batch.placement import Placement
from penstock.engine.batch.stage_states import StageStates
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_graph import CompiledGraph, resolve_batch_time
from penstock.engine.operators.windowed.window_update import StageResult, count_due_rows
from penstock.engine.state.header_columns import BoolArray
from penstock.engine.state.state_tree import StateTree

LocalOrRemotePartials: TypeAlias = pa.Table | RemotePartials


@dataclass(frozen=True)
class StagePartials:
    """The partials that a first stage read, and which of them it refused as `late`.

    For partials that were processed on executors, only the columns of the accounts are here.
    """

    partials: pa.Table
    late: BoolArray


@dataclass(frozen=True)
class StageResults:
    """The result of each stage, and the partials read by each first stage.

    `runs` are the state files of stages that wrote their changed state already.
    """

    outcomes: Mapping[str, StageResult]
    read_partials: Mapping[str, StagePartials]
    runs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def placement(self) -> str:
        """Where the first stages were accepted: `executors` if any of them was."""
        return "executors" if self.runs else "driver"


def collect_partials(
    inputs_by_stage: Mapping[str, BatchInput], graph: CompiledGraph, placement: Placement, record_count: int
) -> dict[str, LocalOrRemotePartials]:
    """Compute the partials of each first stage; leave them on the executors if they may exceed the budget."""
    first_input = next(iter(inputs_by_stage.values()))
    may_be_large = any(placement.may_exceed_budget(stage, record_count) for stage in graph.record_stages)
    if may_be_large and isinstance(first_input, RemotePartialsInput):
        return dict(first_input.compute_remote_partials())
    return {name: stage_input.compute_partials() for name, stage_input in inputs_by_stage.items()}


def summarize_partials(partials: LocalOrRemotePartials) -> pa.Table:
    """Return at least one row per partition that summarizes the partials."""
    return partials if isinstance(partials, pa.Table) else partials.summary


def release_partials(partials: Mapping[str, LocalOrRemotePartials]) -> None:
    """Release partials that are stored on executors."""
    for stage_partials in partials.values():
        if not isinstance(stage_partials, pa.Table):
            stage_partials.release()


def process_stages(
    graph: CompiledGraph,
    stage_states: StageStates,
    placement: Placement,
    partials: Mapping[str, LocalOrRemotePartials],
    batch_time: BatchTime,
) -> StageResults:
    """Process each first stage where it fits, and the later stages on the driver."""
    outcomes: dict[str, StageResult] = {}
    read_partials: dict[str, StagePartials] = {}
    runs: dict[str, Sequence[str]] = {}
    for stage in graph.record_stages:
        name, stage_time = stage.plan.name, resolve_batch_time(stage, batch_time)
        stage_partials, tree = partials[name], stage_states.trees[name]
        if fits_on_driver(stage, tree, placement, stage_partials, stage_time):
            partials_table = (
                stage_partials if isinstance(stage_partials, pa.Table) else stage_partials.fetch()
            )
            outcomes[name] = process_batch(stage, tree, select_window_partials(partials_table), stage_time)
            read_partials[name] = StagePartials(partials_table, outcomes[name].is_late)
        else:
            task = PartTask(
                stage,
                stage_states.stage_folder(name),
                tree.list_file_names(),
                stage_time,
                batch_time.batch_id,
            )
            combined = process_in_parts(placement, task, stage_partials)
            outcomes[name], runs[name] = combined.outcome, combined.runs
            read_partials[name] = StagePartials(
                *split_refused(summarize_partials(stage_partials), combined.late)
            )
    return StageResults(
        graph.process_downstream(stage_states.trees, outcomes, batch_time), read_partials, runs
    )


def process_in_parts(placement: Placement, task: PartTask, partials: LocalOrRemotePartials) -> CombinedParts:
    """Process a stage in parts."""
    assert placement.part_executor is not None
    return combine_parts(task.stage, placement.part_executor.process_parts(task, partials))


def fits_on_driver(
    stage: CompiledStage,
    tree: StateTree,
    placement: Placement,
    partials: LocalOrRemotePartials,
    batch_time: BatchTime,
) -> bool:
    """Whether a stage is processed on the driver: its data is small enough, or there are no executors."""
    if placement.part_executor is None:
        return True
    partial_count = partials.num_rows if isinstance(partials, pa.Table) else partials.rows
    return placement.fits_on_driver(stage, partial_count, count_due_rows(tree, batch_time), partials.nbytes)
