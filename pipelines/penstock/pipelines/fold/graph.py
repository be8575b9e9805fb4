"""All stages of a plan in one batch: the first ones fold what Spark sends, each later one the changes before it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.pipelines.errors import LateChangeError
from penstock.pipelines.fold.changes import change_columns, changes_of
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.lifting import lifted, united
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.state.tree import Tree


@dataclass(frozen=True)
class ReadyGraph:
    """The stages of a plan made ready, each after those whose panes it reads."""

    plan: Plan
    stages: tuple[ReadyStage, ...]

    @property
    def firsts(self) -> tuple[ReadyStage, ...]:
        """The stages that read records."""
        return tuple(stage for stage in self.stages if not stage.changes)

    @property
    def first(self) -> ReadyStage:
        """The first of them."""
        return self.firsts[0]

    @property
    def later(self) -> tuple[ReadyStage, ...]:
        """The stages that read panes."""
        return tuple(stage for stage in self.stages if stage.changes)

    def follow(
        self, states: Mapping[str, Tree], firsts: Mapping[str, Outcome], moment: Moment
    ) -> dict[str, Outcome]:
        """Fold what the first stages say into the states of those after them."""
        folded = dict(firsts)
        by_name = {stage.plan.name: stage for stage in self.stages}
        for stage in self.later:
            read = {name: changes_of(by_name[name], folded[name]) for name in stage.plan.inputs}
            came = lifted(stage, united(stage.plan, read))
            done = fold(stage, states[stage.plan.name], came, moment)
            # A stage allows at least the lateness of those before it, so what they say is never too late.
            if done.late.any():
                raise LateChangeError(stage.plan.name, int(done.late.sum()), moment.batch_id)
            folded[stage.plan.name] = done
        return folded


def moment_of(stage: ReadyStage, moment: Moment) -> Moment:
    """The moment by which the windows of a stage that reads records are judged."""
    return moment.by_the_clock() if stage.by_the_clock else moment


Types = Mapping[str, pa.DataType]


def ready_graph(plan: Plan, types: Mapping[str, Types]) -> ReadyGraph:
    """Make a plan ready; `types` are those of the fields that each first stage finds after its steps."""
    ready: dict[str, ReadyStage] = {}
    for stage in plan.stages:
        feeding = plan.feeding(stage)
        if feeding:
            shown = {each.name: change_columns(ready[each.name]).empty_table() for each in feeding}
            found = {field.name: field.type for field in united(stage, shown).schema}
            ready[stage.name] = ready_stage(stage, found, changes=True)
        else:
            ready[stage.name] = ready_stage(stage, types[stage.name])
    return ReadyGraph(plan, tuple(ready.values()))
