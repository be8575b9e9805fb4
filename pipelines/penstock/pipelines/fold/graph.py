"""All stages of a plan in one batch: the first folds what Spark sends, each later one the changes before it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.pipelines.fold.changes import all_changes, change_columns, changes_of
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.lifting import lifted, stepped
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.state.tree import Tree


@dataclass(frozen=True)
class ReadyGraph:
    """The stages of a plan made ready, each after those whose panes it reads."""

    stages: tuple[ReadyStage, ...]

    @property
    def first(self) -> ReadyStage:
        """The stage that reads records."""
        return self.stages[0]

    @property
    def later(self) -> tuple[ReadyStage, ...]:
        """The stages that read panes."""
        return self.stages[1:]

    def moment_of_first(self, moment: Moment) -> Moment:
        """The moment by which the windows of the first stage are judged."""
        return moment.by_the_clock() if self.first.by_the_clock else moment

    def fold(self, states: Mapping[str, Tree], partials: pa.Table, moment: Moment) -> dict[str, Outcome]:
        """Fold a batch into the states of all stages. Pure, as the fold of one stage is."""
        first = fold(self.first, states[self.first.plan.name], partials, self.moment_of_first(moment))
        return self.follow(states, first, moment)

    def follow(self, states: Mapping[str, Tree], first: Outcome, moment: Moment) -> dict[str, Outcome]:
        """Fold what the first stage says into the states of those after it."""
        folded = {self.first.plan.name: first}
        by_name = {stage.plan.name: stage for stage in self.stages}
        for stage in self.later:
            read = [changes_of(by_name[name], folded[name]) for name in stage.plan.inputs]
            came = lifted(stage, all_changes(read))
            done = fold(stage, states[stage.plan.name], came, moment)
            # A stage allows at least the lateness of those before it, so what they say is never too late.
            assert not done.late.any(), f"{stage.plan.name} was told too late"
            folded[stage.plan.name] = done
        return folded


def ready_graph(plan: Plan, types: Mapping[str, pa.DataType]) -> ReadyGraph:
    """Make a plan ready whose first stage finds fields of these types after its steps."""
    ready: dict[str, ReadyStage] = {}
    for stage in plan.stages:
        feeding = plan.feeding(stage)
        if feeding:
            shown = all_changes([change_columns(ready[each.name]).empty_table() for each in feeding])
            found = {field.name: field.type for field in stepped(stage.steps, shown).schema}
            ready[stage.name] = ready_stage(stage, found, changes=True)
        else:
            ready[stage.name] = ready_stage(stage, types)
    return ReadyGraph(tuple(ready.values()))
