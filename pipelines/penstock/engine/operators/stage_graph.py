"""Run all stages of a plan in one batch: first those that read records, then those that read their panes."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.errors import LateRetractionError
from penstock.engine.operators.changelog.changes_to_partials import make_partials, union_changes
from penstock.engine.operators.changelog.pane_changes import change_schema, panes_to_changes
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.plan.stages import Plan
from penstock.engine.state.state_tree import StateTree


@dataclass(frozen=True)
class CompiledGraph:
    """The compiled stages of a plan, each after the stages whose panes it reads."""

    plan: Plan
    stages: tuple[CompiledStage, ...]

    @property
    def record_stages(self) -> tuple[CompiledStage, ...]:
        """The stages that read records."""
        return tuple(stage for stage in self.stages if not stage.reads_changes)

    @property
    def first_record_stage(self) -> CompiledStage:
        """The first stage that reads records."""
        return self.record_stages[0]

    @property
    def downstream_stages(self) -> tuple[CompiledStage, ...]:
        """The stages that read panes of other stages."""
        return tuple(stage for stage in self.stages if stage.reads_changes)

    def process_downstream(
        self,
        states: Mapping[str, StateTree],
        record_results: Mapping[str, StageResult],
        batch_time: BatchTime,
    ) -> dict[str, StageResult]:
        """Process the panes of the record stages through the downstream stages.

        Return the results of all stages.
        """
        results = dict(record_results)
        by_name = {stage.plan.name: stage for stage in self.stages}
        for stage in self.downstream_stages:
            changes = {name: panes_to_changes(by_name[name], results[name]) for name in stage.plan.inputs}
            partials = make_partials(stage, union_changes(stage.plan, changes))
            result = process_batch(stage, states[stage.plan.name], partials, batch_time)
            # A stage allows at least the lateness of its upstream stages, so their changes are never too
            # late.
            if result.is_late.any():
                raise LateRetractionError(stage.plan.name, int(result.is_late.sum()), batch_time.batch_id)
            results[stage.plan.name] = result
        return results


def resolve_batch_time(stage: CompiledStage, batch_time: BatchTime) -> BatchTime:
    """Return the batch time by which a stage that reads records opens and closes windows."""
    return batch_time.for_processing_time() if stage.uses_processing_time else batch_time


ArrowFieldTypes = Mapping[str, pa.DataType]


def compile_graph(plan: Plan, field_types_by_stage: Mapping[str, ArrowFieldTypes]) -> CompiledGraph:
    """Compile a plan. `field_types_by_stage` has the field types of each record stage after its steps."""
    compiled: dict[str, CompiledStage] = {}
    for stage in plan.stages:
        upstream_stages = plan.upstream_of(stage)
        if upstream_stages:
            upstream_changes = {
                upstream.name: change_schema(compiled[upstream.name]).empty_table()
                for upstream in upstream_stages
            }
            field_types = {field.name: field.type for field in union_changes(stage, upstream_changes).schema}
            compiled[stage.name] = compile_stage(stage, field_types, reads_changes=True)
        else:
            compiled[stage.name] = compile_stage(stage, field_types_by_stage[stage.name])
    return CompiledGraph(plan, tuple(compiled.values()))
