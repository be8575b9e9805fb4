"""Runs the past batches of a stream again with the same records, ranges and clocks, which gives the same panes.

Spark's job is the expensive part of a small batch, so many batches share one job, grouped by batch. Then each
batch is processed by itself, with the engine of live streams, with a separate journal and state.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.batch_input import LATE_RECORD_SCHEMA, BatchInput
from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.excluded_records import ExcludedRecord
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.record_schemas import QUARANTINED_RECORD_SCHEMA
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.batch_time import BatchTime
from penstock.engine.dedup.id_store import open_id_store
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_graph import CompiledGraph, compile_graph
from penstock.engine.operators.stateful.side_outputs import select_output_panes
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.multi_batch_input import BatchRanges, MultiBatchInput
from penstock.engine.spark.parse.suspects import judge_always
from penstock.engine.spark.parse.writer_schemas import (
    SchemaLookup,
    load_writer_schemas,
    refuse_without_registry,
)
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.storage import StoragePath
from penstock.engine.tables.lookup_tables import LookupTables
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.timestamps import as_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_RECORDS_PER_JOB = 200_000
MAX_BATCHES_PER_JOB = 1_000


@dataclass(frozen=True)
class BatchToReexecute:
    """The clock and ranges of a past batch; a tick has no ranges.

    `watermark` replaces the one from the records, as in an intent. `table_versions` are those of lookup tables.
    """

    clock_ms: int
    ranges: tuple[OffsetRange, ...] = ()
    watermark: int | None = None
    table_versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def record_count(self) -> int:
        """The number of offsets in its ranges."""
        return sum(span.end - span.start for span in self.ranges)


class InMemoryPanes:
    """A sink that keeps the panes of each stage in memory; it drops late and quarantined records."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._stages = {stage.plan.name: stage for stage in graph.stages}
        self._panes: dict[str, list[pa.Table]] = {name: [] for name in self._stages}

    def write(self, rows: BatchRows, moment: BatchTime) -> dict[str, TableChange]:
        """Keep a batch's panes; each batch is written once, as such a run is never resumed."""
        for stage, table in rows.panes.items():
            self._panes[stage].append(as_table(table))
        return {}

    def discard(self, changes: Mapping[str, TableChange]) -> None:
        """Do nothing: a failed run ends, and its panes are freed with it."""

    def list_unsynced_files(self, changes: Mapping[str, TableChange]) -> Sequence[Path]:
        """Return nothing: no file was written."""
        return ()

    def recover(self, outcomes: Sequence[BatchOutcome]) -> None:
        """Do nothing: there are no tables."""

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        """Do nothing: `write` has kept the panes."""

    def panes_of(self, stage: str, output: str | None = None) -> pa.Table:
        """Return every pane of an output of a stage, in the order of batches."""
        return select_output_panes(self._stages[stage], pa.concat_tables(self._panes[stage]), output)


def reexecute_batches(
    plan: Plan,
    session: "SparkSession",
    source: BoundedSource,
    batches: Sequence[BatchToReexecute],
    folder: Path,
    report_outcome: Callable[[BatchOutcome], None],
    excluded_records: Sequence[ExcludedRecord] = (),
    warehouse: StoragePath | None = None,
    schema_lookup: SchemaLookup = refuse_without_registry,
) -> InMemoryPanes:
    """Run batches again, numbered from 0, in an empty folder, and return their panes.

    `excluded_records` were quarantined for errors of user code. The warehouse holds the lookup tables, and
    `schema_lookup` finds the schemas of records in Avro.
    """
    lookup_tables = LookupTables(plan.lookups, warehouse or folder)
    graph = compile_graph(plan, FieldTypeResolver(session).resolve_plan(plan))
    panes = InMemoryPanes(graph)
    fence, id_store = WriteFence(plan.name, 1, lambda: True), open_id_store(plan, folder / "ids")
    engine = BatchEngine(
        graph,
        collect_watermark_rules(plan.sources),
        folder,
        panes,
        fence,
        report_outcome,
        EngineOptions(dedup_memory=id_store),
    )
    for job_batches in group_batches_by_job(batches):
        data_batches = [(number, batch) for number, batch in job_batches if batch.ranges]
        spans = {number: BatchRanges(number, batch.clock_ms, batch.ranges) for number, batch in data_batches}
        ranges = merge_ranges(tuple(spans.values()))
        for number, batch in job_batches:
            if number not in spans:
                engine.run_tick(batch.clock_ms, batch.watermark)
                continue
            if number == data_batches[0][0]:
                scan = MultiBatchInput(
                    source.read_records(ranges),
                    plan.sources,
                    graph.first_record_stage,
                    "_batch_clock",
                    ranges,
                    excluded_records=tuple(excluded_records),
                    lookup_rows=lookup_tables.rows_reader_at(batch.table_versions),
                    other_stages=graph.record_stages[1:],
                    writer_schemas=load_writer_schemas(plan.sources, schema_lookup),
                    judge_mode=judge_always(),
                    batches=tuple(spans.values()),
                )
            intent = engine.start_data_batch(
                number, batch.clock_ms, batch.ranges, batch.watermark, batch.table_versions
            )
            assert intent is not None  # the folder was empty
            engine.run_data_batch(intent, _BatchShareInput(scan, spans[number], scan.stage))
    return panes


def group_batches_by_job(batches: Sequence[BatchToReexecute]) -> Iterator[list[tuple[int, BatchToReexecute]]]:
    """Yield the batches of each job with their numbers; batches of one job read the same lookup versions."""
    job_batches: list[tuple[int, BatchToReexecute]] = []
    records, job_versions = 0, None
    for number, batch in enumerate(batches):
        is_full = records >= MAX_RECORDS_PER_JOB or len(job_batches) >= MAX_BATCHES_PER_JOB
        has_other_versions = bool(batch.ranges) and job_versions not in (None, batch.table_versions)
        if job_batches and (is_full or has_other_versions):
            yield job_batches
            job_batches, records, job_versions = [], 0, None
        job_batches.append((number, batch))
        records += batch.record_count
        job_versions = batch.table_versions if batch.ranges else job_versions
    if job_batches:
        yield job_batches


def merge_ranges(batches: Sequence[BatchRanges]) -> tuple[OffsetRange, ...]:
    """Return for each partition one range that covers the ranges of all batches."""
    merged: dict[str, OffsetRange] = {}
    for span in (span for batch in batches for span in batch.ranges):
        merged_span = merged.setdefault(span.name, span)
        merged[span.name] = replace(
            merged_span, start=min(merged_span.start, span.start), end=max(merged_span.end, span.end)
        )
    return tuple(merged.values())


@dataclass(frozen=True)
class _BatchShareInput:
    """The input of one batch, taken from the job that its batch shares with others."""

    scan: MultiBatchInput
    batch_ranges: BatchRanges
    stage: CompiledStage

    def inputs_of_other_stages(self) -> Mapping[str, BatchInput]:
        """Return the same records as inputs of the other stages."""
        return {
            other_stage.plan.name: replace(self, stage=other_stage) for other_stage in self.scan.other_stages
        }

    def compute_partials(self) -> pa.Table:
        """Return the batch's share of the partials."""
        return self.scan.partials_of_batch(self.batch_ranges, self.stage)

    def read_invalid_records(self) -> pa.Table:
        """Return no rows: the partials hold the number of invalid records."""
        return QUARANTINED_RECORD_SCHEMA.empty_table()

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Return no rows: the processing counts late records."""
        return pa.schema([*LATE_RECORD_SCHEMA, *self.stage.key]).empty_table()

    def read_ids(self) -> pa.Table:
        """Return the batch's share of the ids."""
        ids = self.scan.all_ids
        range_masks = [
            pc.and_(
                pc.and_(
                    pc.equal(ids.column("_topic"), span.topic),
                    pc.equal(ids.column("_partition"), span.partition),
                ),
                pc.and_(
                    pc.greater_equal(ids.column("_offset"), span.start),
                    pc.less(ids.column("_offset"), span.end),
                ),
            )
            for span in self.batch_ranges.ranges
        ]
        return pa.concat_tables([ids.filter(range_mask) for range_mask in range_masks])

    def drop_duplicates(self, duplicates: pa.Table) -> "BatchInput":
        """Return the records without these duplicates; if there are any, the batch gets a job of its own."""
        if not duplicates.num_rows:
            return self
        return replace(self, scan=self.scan.isolate_batch(self.batch_ranges, duplicates))
