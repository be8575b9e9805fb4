"""Computes one batch: reads its records, advances the watermarks, and processes the stages."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.engine.batch.batch_input import (
    BatchInput,
    IdentifiedInput,
    UnprovenRecordsError,
    find_newest_times,
    split_by_stage,
)
from penstock.engine.batch.batch_result import BatchResult
from penstock.engine.batch.committed_state import CommittedState
from penstock.engine.batch.input_watermarks import StreamWatermarks, WatermarkRules
from penstock.engine.batch.intent import BatchIntent
from penstock.engine.batch.placement import Placement
from penstock.engine.batch.stage_execution import (
    collect_partials,
    process_stages,
    release_partials,
    summarize_partials,
)
from penstock.engine.batch.stopwatch import Stopwatch
from penstock.engine.dedup.duplicates import DuplicateSplit, create_empty_split
from penstock.engine.operators.stage_graph import CompiledGraph


@dataclass(frozen=True)
class BatchComputation:
    """One declared batch. It changes nothing, so it can be computed again with other records."""

    intent: BatchIntent
    graph: CompiledGraph
    watermark_rules: WatermarkRules
    committed: CommittedState
    placement: Placement
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def compute(self, batch_input: BatchInput) -> BatchResult:
        """Read and process the records. Release the result after use."""
        try:
            return self._compute(batch_input)
        except UnprovenRecordsError:
            return self._compute(batch_input)

    def _compute(self, batch_input: BatchInput) -> BatchResult:
        with self.stopwatch.step("read"):
            batch_input, dedup_result = self._drop_duplicates(batch_input)
            record_count = sum(span.end - span.start for span in self.intent.ranges)
            inputs_by_stage = split_by_stage(batch_input, self.graph.record_stages)
            partials = collect_partials(inputs_by_stage, self.graph, self.placement, record_count)
        try:
            watermarks = self._advance_watermarks(map(summarize_partials, partials.values()))
            batch_time = self.committed.make_batch_time(self.intent, watermarks.stream)
            with self.stopwatch.step("process"):
                stage_results = process_stages(
                    self.graph, self.committed.stages, self.placement, partials, batch_time
                )
        except Exception:
            release_partials(partials)
            raise
        return BatchResult(inputs_by_stage, dedup_result, partials, watermarks, batch_time, stage_results)

    def _drop_duplicates(self, batch_input: BatchInput) -> tuple[BatchInput, DuplicateSplit]:
        """Drop records whose ids were seen before, if the stream deduplicates."""
        id_store = self.committed.id_store
        if id_store is None:
            return batch_input, create_empty_split()
        if not isinstance(batch_input, IdentifiedInput):
            raise TypeError(f"{type(batch_input).__name__} has no record ids to deduplicate by")
        dedup_result = id_store.split_duplicates(batch_input.read_ids())
        return batch_input.drop_duplicates(dedup_result.duplicates), dedup_result

    def _advance_watermarks(self, summaries: Iterable[pa.Table]) -> StreamWatermarks:
        intent = self.intent
        previous = self.committed.watermarks.with_unread(intent.unread, intent.clock)
        partitions = [span.name for span in intent.ranges]
        newest = {name: time for current in summaries for name, time in find_newest_times(current).items()}
        current = previous.advance(self.watermark_rules, partitions, newest, intent.clock)
        if intent.watermark is None:
            return current
        watermark_ms = max(previous.stream.value, intent.watermark)
        return replace(current, stream=replace(current.stream, value=watermark_ms))
