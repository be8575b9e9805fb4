"""A stage, and the plan: a graph of stages, of which there may be one."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.pipelines.plan.aggregates import Output
from penstock.pipelines.plan.joins import Join
from penstock.pipelines.plan.relaying import Published
from penstock.pipelines.plan.sinks import Sink
from penstock.pipelines.plan.source import ADDED, Source
from penstock.pipelines.plan.steps import Lookup, Prepared, Step
from penstock.pipelines.plan.triggers import Default, Trigger
from penstock.pipelines.plan.windows import Window

Accumulation: TypeAlias = Literal["discarding", "accumulating", "retracting"]
OnTimePane: TypeAlias = Literal["always", "when_changed"]
FinalPane: TypeAlias = Literal["never", "when_changed", "always"]

DEFAULT = Default()


@dataclass(frozen=True)
class Stage:
    """One grouping: what is read, the steps before it, and the answers to the four questions.

    `inputs` are names of sources or of earlier stages. Order windows leave trigger, lateness, final pane at
    their defaults: the window's own policies say when it shows what it holds.
    """

    name: str
    inputs: tuple[str, ...]
    window: Window
    aggregates: tuple[Output, ...]
    steps: tuple[Step, ...] = ()
    key: tuple[str, ...] = ()
    trigger: Trigger = DEFAULT
    lateness: int = 0
    accumulation: Accumulation = "accumulating"
    on_time_pane: OnTimePane = "always"
    final_pane: FinalPane = "never"
    may_finish: bool = False
    sinks: tuple[Sink, ...] = ()
    prepared: tuple[Prepared, ...] = field(default=(), metadata=ADDED)
    """What is done to single inputs before `steps`, which are done to all."""
    join: Join | None = field(default=None, metadata=ADDED)
    """How the members that its aggregates hold are put together into rows."""
    topics: tuple[Published, ...] = field(default=(), metadata=ADDED)
    """Where its panes are published."""

    def steps_of(self, input_: str) -> tuple[Step, ...]:
        """Return the steps of one input alone."""
        return next((each.steps for each in self.prepared if each.input == input_), ())


@dataclass(frozen=True)
class Plan:
    """A whole pipeline: sources, and stages in an order in which each comes after its inputs."""

    name: str
    sources: tuple[Source, ...]
    stages: tuple[Stage, ...]

    @property
    def stage(self) -> Stage:
        """Return the only stage; a plan with several has no such thing."""
        (only,) = self.stages
        return only

    @property
    def firsts(self) -> tuple[Stage, ...]:
        """Return the stages that read sources."""
        return tuple(stage for stage in self.stages if not self.feeding(stage))

    @property
    def first(self) -> Stage:
        """Return the first of the stages that read sources."""
        return self.firsts[0]

    def read_by(self, stage: Stage) -> tuple[Source, ...]:
        """Return the sources that a stage reads; none where it reads panes."""
        return tuple(source for source in self.sources if source.name in stage.inputs)

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Return the steps of first stages that look into tables."""
        own = (
            (*stage.steps, *(step for each in stage.prepared for step in each.steps)) for stage in self.firsts
        )
        return tuple(step for steps in own for step in steps if isinstance(step, Lookup))

    def feeding(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the stages whose panes a stage reads; none where it reads sources."""
        return tuple(each for each in self.stages if each.name in stage.inputs)

    def changes(self, stage: Stage) -> bool:
        """Tell whether what a stage reads may be taken back."""
        return any(each.accumulation == "retracting" for each in self.feeding(stage))

    def source(self, name: str) -> Source:
        """Return the source of that name."""
        return next(source for source in self.sources if source.name == name)
