"""One script through the batch engine: its intents, its state, its tables, and what they say afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from penstock.pipelines.batch.engine import Engine
from penstock.pipelines.batch.inputs import rules_of
from penstock.pipelines.batch.reading import Reading
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.tables import StreamTables
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.reference import Batch, Instant
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.transcripts.engine import Observed, OpenWindow, Script
from penstock.pipelines.transcripts.on_spark.records import range_of
from penstock.pipelines.transcripts.on_spark.state import open_windows
from penstock.pipelines.transcripts.on_spark.tables import Told

Readings = Mapping[int, Reading]
"""The records of the batches that have some, by the number of the batch."""


@dataclass(frozen=True)
class Driving:
    """A script at work in a folder of its own."""

    script: Script
    stage: ReadyStage
    folder: Path

    def run(self, readings: Readings) -> Sequence[Observed]:
        """Run every batch, then read the tables."""
        engine = self.engine()
        windows = [self.after(engine, batch, readings) for batch in self.script.batches]
        told = Told(self.script.plan, self.stage, self.folder / "warehouse")
        return [
            Observed(told.panes(batch.id), told.late(batch.id), open_after)
            for batch, open_after in zip(self.script.batches, windows, strict=True)
        ]

    def engine(self) -> Engine:
        """Return an engine at its beginning."""
        plan = self.script.plan
        graph = ReadyGraph(plan, (self.stage,))
        tables = StreamTables(plan, graph, self.folder / "warehouse")
        right = Right(plan.name, 1, lambda: True)
        rules = rules_of(plan.sources)
        return Engine(graph, rules, self.folder / "stream", tables, right, lambda _: None)

    def after(self, engine: Engine, batch: Batch, readings: Readings) -> tuple[OpenWindow, ...] | None:
        """Run a batch: one of records, or a tick; return the windows that are open after it."""
        watermark = told_watermark(batch)
        if batch.records:
            ranges = (range_of(batch.records),)
            reading = readings[batch.id]
            engine.data(batch.id, batch.clock, ranges, lambda _: reading, watermark)
        else:
            engine.tick(batch.clock, watermark)
        return open_windows(self.stage, engine.state[self.stage.plan.name])


def told_watermark(batch: Batch) -> int | None:
    """Return the watermark that the script gives a batch."""
    if batch.ends:
        return NEVER
    return None if batch.watermark is None else as_milliseconds(batch.watermark)


def as_milliseconds(instant: Instant) -> int:
    """Return an instant as the fold has it."""
    return NEVER if instant == inf else BEFORE_ALL if instant == -inf else int(instant)
