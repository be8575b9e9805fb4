"""The fold of one batch, here or in parts elsewhere: what is the same afterwards wherever it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from penstock.pipelines.batch.holding import Holding
from penstock.pipelines.batch.parts import PartTask, SpreadOutcome, gathered, told_apart
from penstock.pipelines.batch.placement import Placement
from penstock.pipelines.batch.reading import Reading, Weighable, Weighed, windowed
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.graph import ReadyGraph, moment_of
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome, due_rows
from penstock.pipelines.state.columns import Mask
from penstock.pipelines.state.tree import Tree

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
        """Where its first stages were folded: in the executors if any of them was."""
        return "executors" if self.runs else "driver"


def held(
    readings: Mapping[str, Reading], graph: ReadyGraph, placement: Placement, records: int
) -> dict[str, Partials]:
    """The partials of each first stage: fetched, or weighed where those of any may be more than fit here."""
    reading = next(iter(readings.values()))
    large = any(placement.may_not_fit(stage, records) for stage in graph.firsts)
    if large and isinstance(reading, Weighable):
        return dict(reading.weigh())
    return {name: found.partials() for name, found in readings.items()}


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
    """Fold each first stage of a batch where it fits, and the stages after them here."""
    done: dict[str, Outcome] = {}
    told: dict[str, Told] = {}
    runs: dict[str, Sequence[str]] = {}
    for stage in graph.firsts:
        name, at = stage.plan.name, moment_of(stage, moment)
        came, tree = partials[name], holding.trees[name]
        if fits(stage, tree, placement, came, at):
            fetched = came if isinstance(came, pa.Table) else came.fetched()
            done[name] = fold(stage, tree, windowed(fetched), at)
            told[name] = Told(fetched, done[name].late)
        else:
            task = PartTask(stage, holding.folder(name), tree.files(), at, batch_id)
            spread = elsewhere(placement, task, came)
            done[name], runs[name] = spread.outcome, spread.runs
            told[name] = Told(*told_apart(summary(came), spread.late))
    return BatchFolded(graph.follow(holding.trees, done, moment), told, runs)


def elsewhere(placement: Placement, task: PartTask, partials: Partials) -> SpreadOutcome:
    """Fold a stage in parts where there is somebody to do it."""
    assert placement.spreader is not None
    return gathered(task.stage, placement.spreader.fold(task, partials))


def fits(stage: ReadyStage, tree: Tree, placement: Placement, partials: Partials, moment: Moment) -> bool:
    """Whether a stage is folded here: what it touches is small enough, or nobody can fold it in parts."""
    if placement.spreader is None:
        return True
    many = partials.num_rows if isinstance(partials, pa.Table) else partials.rows
    return placement.fits(stage, many, due_rows(tree, moment), partials.nbytes)
