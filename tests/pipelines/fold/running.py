"""A graph that is folded batch by batch as a stream's engine does it: all stages, and their state in files."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from penstock.pipelines.batch.folding import folded
from penstock.pipelines.batch.holding import Holding
from penstock.pipelines.batch.placement import HERE
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.state.columns import BEFORE_ALL


class Running:
    """A graph over a folder, told of each batch what its first stages get."""

    def __init__(self, graph: ReadyGraph, folder: Path) -> None:
        self.graph, self.holding = graph, Holding(graph, folder)
        self.clock, self.watermark, self.batch = BEFORE_ALL, BEFORE_ALL, 0

    def run(
        self, came: Mapping[str, pa.Table], clock: int, watermark: int
    ) -> tuple[dict[str, Outcome], Moment]:
        moment = Moment(self.batch, self.clock, clock, self.watermark, watermark)
        read = {name: none_set_aside(table) for name, table in came.items()}
        done = folded(self.graph, self.holding, HERE, read, moment, self.batch)
        self.holding.adopt(self.holding.after(done.stages, self.batch, done.runs))
        self.clock, self.watermark, self.batch = clock, watermark, self.batch + 1
        return dict(done.stages), moment


def none_set_aside(partials: pa.Table) -> pa.Table:
    """Partials as a reading has them, all of good records."""
    return partials.append_column("_set_aside", pa.nulls(partials.num_rows, pa.string()))
