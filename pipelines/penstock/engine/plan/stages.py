"""Stages, and the plan: a graph of one or more stages."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.definition.stored_fields import OMITTED_AT_DEFAULT
from penstock.engine.plan.joins import Join
from penstock.engine.plan.sinks import Sink, TableSink
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.steps import InputSteps, LookupStep, Step
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.window import Window

AccumulationMode: TypeAlias = Literal["discarding", "accumulating", "retracting"]
OnTimePanePolicy: TypeAlias = Literal["always", "when_changed"]
FinalPanePolicy: TypeAlias = Literal["never", "when_changed", "always"]

DEFAULT_TRIGGER = Default()


@dataclass(frozen=True)
class Stage:
    """One grouping: its inputs, the steps before it, and the answers to the four questions.

    `inputs` are names of sources or of upstream stages. Order windows keep the defaults of trigger, lateness and
    final pane, because their policies decide when they emit.
    """

    name: str
    inputs: tuple[str, ...]
    window: Window
    aggregates: tuple[AggregateOutput, ...]
    steps: tuple[Step, ...] = ()
    key: tuple[str, ...] = ()
    trigger: Trigger = DEFAULT_TRIGGER
    lateness: int = 0
    accumulation: AccumulationMode = "accumulating"
    on_time_pane: OnTimePanePolicy = "always"
    final_pane: FinalPanePolicy = "never"
    may_finish: bool = False
    sinks: tuple[TableSink, ...] = ()
    input_steps: tuple[InputSteps, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    """Steps of single inputs, which run before `steps`."""
    join: Join | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    """The join of the elements that the aggregates of the stage hold."""
    topics: tuple[Sink, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    """The topics to which the panes are published."""

    @property
    def has_default_trigger(self) -> bool:
        """Whether the trigger was not set, or set to the default."""
        return self.trigger == DEFAULT_TRIGGER

    @property
    def all_sinks(self) -> tuple[Sink, ...]:
        """The tables and topics that it writes."""
        return (*self.sinks, *self.topics)

    @property
    def has_restricted_aggregates(self) -> bool:
        """Whether an aggregate is restricted to one input."""
        return any(output.aggregate.restricted_input is not None for output in self.aggregates)

    def steps_of_input(self, input_: str) -> tuple[Step, ...]:
        """Return the steps of one input."""
        return next(
            (input_steps.steps for input_steps in self.input_steps if input_steps.input == input_), ()
        )


@dataclass(frozen=True)
class Plan:
    """A whole pipeline: its sources, and its stages in topological order."""

    name: str
    sources: tuple[PlanSource, ...]
    stages: tuple[Stage, ...]

    @property
    def only_stage(self) -> Stage:
        """Return the only stage. Raises ValueError if the plan has several."""
        (only_stage,) = self.stages
        return only_stage

    @property
    def source_stages(self) -> tuple[Stage, ...]:
        """Return the stages that read sources."""
        return tuple(stage for stage in self.stages if not self.upstream_of(stage))

    @property
    def first_source_stage(self) -> Stage:
        """Return the first of the stages that read sources."""
        return self.source_stages[0]

    def sources_of(self, stage: Stage) -> tuple[PlanSource, ...]:
        """Return the sources that a stage reads, or none if it reads panes."""
        return tuple(source for source in self.sources if source.name in stage.inputs)

    @property
    def lookups(self) -> tuple[LookupStep, ...]:
        """Return the lookup steps of the stages that read sources."""
        steps_by_stage = (
            (*stage.steps, *(step for input_steps in stage.input_steps for step in input_steps.steps))
            for stage in self.source_stages
        )
        return tuple(step for steps in steps_by_stage for step in steps if isinstance(step, LookupStep))

    def upstream_of(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the stages whose panes a stage reads, or none if it reads sources."""
        return tuple(candidate for candidate in self.stages if candidate.name in stage.inputs)

    def window_of(self, stage: Stage) -> Window:
        """Return the window of a stage; one that has the windows of another stage has that stage's window."""
        while stage.window.reuses_upstream_windows:
            stage = self.upstream_of(stage)[0]
        return stage.window

    def reads_retractions(self, stage: Stage) -> bool:
        """Return whether the input of a stage may be retracted."""
        return any(upstream.accumulation == "retracting" for upstream in self.upstream_of(stage))

    def source_named(self, name: str) -> PlanSource:
        """Return the source of that name."""
        return next(source for source in self.sources if source.name == name)
