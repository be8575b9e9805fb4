"""Runs one script through the batch engine: intents, state and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from penstock.conformance.engines import ObservedBatch, OpenWindow, Script
from penstock.conformance.on_spark.shared_topic import offset_range_of
from penstock.conformance.on_spark.state_windows import read_open_windows
from penstock.conformance.on_spark.table_reader import ScriptTables
from penstock.conformance.reference import InputBatch, Instant
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

BatchReadings = Mapping[int, BatchInput]
"""The records of each batch that has records, by batch number."""


@dataclass(frozen=True)
class ScriptRun:
    """A running script in a folder of its own."""

    script: Script
    stage: CompiledStage
    folder: Path

    def run(self, readings: BatchReadings) -> Sequence[ObservedBatch]:
        """Run every batch, then read the tables."""
        engine = self.create_engine()
        open_windows_by_batch = [self.run_batch(engine, batch, readings) for batch in self.script.batches]
        tables = ScriptTables(self.script.plan, self.stage, self.folder / "warehouse")
        return [
            ObservedBatch(tables.panes_of(batch.id), tables.late_rows_of(batch.id), open_windows_after)
            for batch, open_windows_after in zip(self.script.batches, open_windows_by_batch, strict=True)
        ]

    def create_engine(self) -> BatchEngine:
        """Return a new engine."""
        plan = self.script.plan
        graph = CompiledGraph(plan, (self.stage,))
        tables = StreamTables(plan, graph, self.folder / "warehouse")
        write_fence = WriteFence(plan.name, 1, lambda: True)
        rules = collect_watermark_rules(plan.sources)
        return BatchEngine(graph, rules, self.folder / "stream", tables, write_fence, lambda _: None)

    def run_batch(
        self, engine: BatchEngine, batch: InputBatch, readings: BatchReadings
    ) -> tuple[OpenWindow, ...] | None:
        """Run a batch of records or a tick; return the open windows."""
        watermark = script_watermark(batch)
        if batch.records:
            ranges = (offset_range_of(batch.records),)
            intent = engine.start_data_batch(batch.id, batch.clock, ranges, watermark)
            if intent is not None:
                engine.run_data_batch(intent, readings[batch.id])
        else:
            engine.run_tick(batch.clock, watermark)
        return read_open_windows(self.stage, engine.state_trees[self.stage.plan.name])


def script_watermark(batch: InputBatch) -> int | None:
    """Return the watermark that the script sets for a batch."""
    if batch.is_last:
        return MAX_TIMESTAMP_MS
    return None if batch.watermark is None else to_engine_ms(batch.watermark)


def to_engine_ms(instant: Instant) -> int:
    """Convert an instant to the engine's milliseconds."""
    return MAX_TIMESTAMP_MS if instant == inf else MIN_TIMESTAMP_MS if instant == -inf else int(instant)
