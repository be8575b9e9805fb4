"""What a pipeline was defined as: the data behind the methods of `Pipeline`, from which the plan is built."""

from dataclasses import dataclass, replace

from penstock.engine.aggregates import AggregateOutput
from penstock.engine.plan.sinks import TableSink
from penstock.engine.plan.stages import AccumulationMode
from penstock.engine.plan.steps import Step
from penstock.engine.sinks.changelog_topic import ChangelogTopic
from penstock.engine.windows.window import Window
from penstock.stream.input_specs import DeduplicationSpec, InputSpec
from penstock.stream.join_columns import JoinSpec
from penstock.stream.trigger_options import TriggerOptions


@dataclass(frozen=True)
class PipelineDefinition:
    """The parts of a pipeline. A part that is None has not been set."""

    inputs: tuple[InputSpec, ...] = ()
    deduplication_spec: DeduplicationSpec | None = None
    steps: tuple[Step, ...] = ()
    key_fields: tuple[str, ...] | None = None
    aggregate_outputs: tuple[AggregateOutput, ...] | None = None
    window_spec: Window | None = None
    trigger_options: TriggerOptions | None = None
    accumulation_mode: AccumulationMode | None = None
    sinks: tuple[TableSink, ...] = ()
    topics: tuple[ChangelogTopic, ...] = ()
    upstream: "tuple[PipelineDefinition, ...]" = ()
    """The pipelines whose panes it reads instead of inputs."""
    stage_name: str | None = None
    siblings: "tuple[PipelineDefinition, ...]" = ()
    """Other outputs of the same graph."""
    input_parts: "tuple[PipelineDefinition, ...]" = ()
    """The parts of a union or join, each with its own steps."""
    join_spec: JoinSpec | None = None

    @property
    def is_stage(self) -> bool:
        """Whether it computes something, beyond an input and steps."""
        return (
            any(
                part is not None
                for part in (
                    self.key_fields,
                    self.aggregate_outputs,
                    self.window_spec,
                    self.trigger_options,
                    self.accumulation_mode,
                    self.stage_name,
                    self.join_spec,
                )
            )
            or len(self.sinks) > 0
            or len(self.topics) > 0
        )

    @property
    def main_table(self) -> str:
        """The first table, which names a pipeline that has no other name."""
        return self.sinks[0].table if self.sinks else "unnamed"

    def without_siblings(self) -> "PipelineDefinition":
        """Return the definition without the other outputs of its graph."""
        return replace(self, siblings=())
