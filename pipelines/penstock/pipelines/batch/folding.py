"""The fold of one batch, here or in parts elsewhere: what is the same afterwards wherever it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from penstock.pipelines.batch.holding import Holding
from penstock.pipelines.batch.parts import PartTask, gathered, told_apart
from penstock.pipelines.batch.placement import Placement
from penstock.pipelines.batch.reading import Reading, Weighable, Weighed, windowed
from penstock.pipelines.fold.graph import ReadyGraph, moment_of
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.touched import Outcome, due_rows
from penstock.pipelines.state.columns import Mask

Partials: TypeAlias = pa.Table | Weighed


@dataclass(frozen=True)
class Told:
    """What is to be known of the records that a first stage read: its partials, of which `late` were refused.

    Of partials that were folded elsewhere there is as much as accounts need.
    """

    partials: pa.Table
    late: Mask


@dataclass(frozen=True)
class BatchFolded:
    """What a batch says, stage by stage, and what is to be known of its records, by first stage.

    `runs` are the files of the changed state of stages that have written it already.
    """

    stages: Mapping[str, Outcome]
    told: Mapping[str, Told]
    runs: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def placement(self) -> str:
        """Where the first stage was folded."""
        return "executors" if self.runs else "driver"


def held(
    readings: Mapping[str, Reading], graph: ReadyGraph, placement: Placement, records: int
) -> dict[str, Partials]:
    """The partials of each first stage: fetched, or weighed where they may be more than fit here.

    Several first stages share a pass over the records, and what comes of it is fetched.
    """
    (name, reading), *others = readings.items()
    if not others and placement.may_not_fit(graph.first, records) and isinstance(reading, Weighable):
        return {name: reading.weigh()}
    return {each: found.partials() for each, found in readings.items()}


def summary(partials: Partials) -> pa.Table:
    """What partials say of records, at least by partition."""
    return partials if isinstance(partials, pa.Table) else partials.summary


def release(partials: Mapping[str, Partials]) -> None:
    """Let go of partials that are kept elsewhere."""
    for each in partials.values():
        if not isinstance(each, pa.Table):
            each.release()


def folded(
    graph: ReadyGraph,
    holding: Holding,
    placement: Placement,
    partials: Mapping[str, Partials],
    moment: Moment,
    batch_id: int,
) -> BatchFolded:
    """Fold a batch where it fits."""
    if fits(graph, holding, placement, partials, moment):
        fetched = {
            name: each if isinstance(each, pa.Table) else each.fetched() for name, each in partials.items()
        }
        stages = graph.fold(holding.trees, {name: windowed(each) for name, each in fetched.items()}, moment)
        return BatchFolded(stages, {name: Told(each, stages[name].late) for name, each in fetched.items()})
    assert placement.spreader is not None
    stage, name = graph.first, graph.first.plan.name
    task = PartTask(
        stage, holding.folder(name), holding.trees[name].files(), moment_of(stage, moment), batch_id
    )
    spread = gathered(stage, placement.spreader.fold(task, partials[name]))
    stages = graph.follow(holding.trees, {name: spread.outcome}, moment)
    told = Told(*told_apart(summary(partials[name]), spread.late))
    return BatchFolded(stages, {name: told}, {name: spread.runs})


def fits(
    graph: ReadyGraph,
    holding: Holding,
    placement: Placement,
    partials: Mapping[str, Partials],
    moment: Moment,
) -> bool:
    """Whether a batch is folded here: it is small enough, or nobody can fold it in parts."""
    if placement.spreader is None or len(graph.firsts) > 1:
        return True
    name = graph.first.plan.name
    found = partials[name]
    many, weight = (found.num_rows, found.nbytes) if isinstance(found, pa.Table) else (found.rows, 0)
    due = due_rows(holding.trees[name], moment_of(graph.first, moment))
    return placement.fits(graph.first, many, due, weight)
