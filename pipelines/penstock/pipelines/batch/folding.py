"""The fold of one batch, here or in parts elsewhere: what is the same afterwards wherever it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.pipelines.batch.holding import Holding
from penstock.pipelines.batch.parts import PartTask, gathered, told_apart
from penstock.pipelines.batch.placement import Placement
from penstock.pipelines.batch.reading import Reading, Weighable, Weighed, windowed
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.touched import Outcome, due_rows
from penstock.pipelines.state.columns import Mask


@dataclass(frozen=True)
class BatchFolded:
    """What a batch says, stage by stage, and what is to be known of its records.

    `told` are the partials, or as much of them as accounts need, of which `late` were refused. `runs` are the files
    of the first stage's changed state, where they are written already.
    """

    stages: Mapping[str, Outcome]
    told: pa.Table
    late: Mask
    runs: Sequence[str] | None = None

    @property
    def placement(self) -> str:
        """Where the first stage was folded."""
        return "driver" if self.runs is None else "executors"


def held(reading: Reading, graph: ReadyGraph, placement: Placement, records: int) -> pa.Table | Weighed:
    """The partials of a reading: fetched, or weighed where they may be more than fit here."""
    if placement.may_not_fit(graph.first, records) and isinstance(reading, Weighable):
        return reading.weigh()
    return reading.partials()


def summary(partials: pa.Table | Weighed) -> pa.Table:
    """What partials say of records, at least by partition."""
    return partials if isinstance(partials, pa.Table) else partials.summary


def release(partials: pa.Table | Weighed) -> None:
    """Let go of partials that are kept elsewhere."""
    if not isinstance(partials, pa.Table):
        partials.release()


def folded(
    graph: ReadyGraph,
    holding: Holding,
    placement: Placement,
    partials: pa.Table | Weighed,
    moment: Moment,
    batch_id: int,
) -> BatchFolded:
    """Fold a batch where it fits."""
    name = graph.first.plan.name
    at = graph.moment_of_first(moment)
    many = partials.num_rows if isinstance(partials, pa.Table) else partials.rows
    if placement.spreader is None or placement.fits(graph.first, many, due_rows(holding.trees[name], at)):
        fetched = partials if isinstance(partials, pa.Table) else partials.fetched()
        stages = graph.fold(holding.trees, windowed(fetched), moment)
        return BatchFolded(stages, fetched, stages[name].late)
    task = PartTask(graph.first, holding.folder(name), holding.trees[name].files(), at, batch_id)
    spread = gathered(graph.first, placement.spreader.fold(task, partials))
    stages = graph.follow(holding.trees, spread.outcome, moment)
    return BatchFolded(stages, *told_apart(summary(partials), spread.late), spread.runs)
