"""Runs batches on Spark with the engine of live streams: journal, state and Delta tables, in a temporary folder."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import write_deltalake

from penstock.conformance.on_spark.table_reader import (
    TableRow,
    late_row_from_row,
    pane_from_row,
    to_instant,
    to_rows,
)
from penstock.conformance.reference import LateRow, Pane, QuarantinedRow, ReplacedWindow
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.history.bounded_run import BoundedRun
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.table_paths import late_records_path, list_quarantine_paths
from penstock.testing.observed_rows import ObservedRows, TopicBatch
from penstock.testing.step_tables import LookupRows, lookup_table
from penstock.testing.topic_records import TopicRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkBackend:
    """Runs a plan on Spark. Each batch is a job, and its rows are read back from the tables."""

    def __init__(
        self, plan: Plan, lookups: LookupRows, open_spark: "Callable[[], SparkSession]", folder: Path
    ) -> None:
        # Every stage logs its panes, whatever the tables that the pipeline writes.
        stages = tuple(replace(stage, sinks=(PaneLog(stage.name),), topics=()) for stage in plan.stages)
        self._plan = replace(plan, stages=stages)
        self._warehouse = folder / "warehouse"
        self._folder = folder
        self._open_spark = open_spark
        self._next_offsets: dict[tuple[str, int], int] = {}
        for step in plan.lookups:
            write_deltalake(self._warehouse / step.table, lookup_table(step, lookups.get(step.table, ())))

    @cached_property
    def _run(self) -> BoundedRun:
        config = BoundedRunConfig(self._folder / "stream", self._warehouse)
        return BoundedRun(self._plan, self._open_spark(), config, lambda _outcome: None)

    def run(self, batch: TopicBatch) -> ObservedRows:
        """Run a batch, and return its rows."""
        watermark = MAX_TIMESTAMP_MS if batch.is_last else None
        if batch.records:
            ranges = self._advance_ranges(batch)
            source = InMemorySource(self._to_frame(batch.records, batch.clock), ranges)
            versions = {step.table: 0 for step in self._plan.lookups}
            self._run.run_batch(batch.number, batch.clock, ranges, source, watermark, versions)
        else:
            self._run.run_tick(batch.clock, watermark)
        return self._read_rows(batch.number)

    def _advance_ranges(self, batch: TopicBatch) -> tuple[OffsetRange, ...]:
        """Return the range of each partition, empty ones included: they hold the watermark back."""
        ranges = []
        for source in self._plan.sources:
            for number in range(batch.partition_count):
                partition = (topic_of(source), number)
                start = self._next_offsets.get(partition, 0)
                end = start + sum((each.topic, each.partition) == partition for each in batch.records)
                self._next_offsets[partition] = end
                ranges.append(OffsetRange(*partition, start, end))
        return tuple(ranges)

    def _to_frame(self, records: Sequence[TopicRecord], clock: int) -> "DataFrame":
        arrived = datetime.fromtimestamp(clock / 1000, UTC)
        rows = [(each.key, each.value, each.topic, each.partition, each.offset, arrived) for each in records]
        return self._open_spark().createDataFrame(rows, KAFKA_SOURCE_DDL)

    def _read_rows(self, batch_id: int) -> ObservedRows:
        first = self._plan.first_source_stage
        panes = {stage.name: self._read_batch(f"panes/{stage.name}", batch_id) for stage in self._plan.stages}
        return ObservedRows(
            {
                stage.name: tuple(
                    _to_pane(stage, row) for row in panes[stage.name] if row["kind"] != "replaced"
                )
                for stage in self._plan.stages
            },
            tuple(_to_replaced(first, row) for row in panes[first.name] if row["kind"] == "replaced"),
            {
                stage.name: tuple(
                    self._to_late_row(stage, row)
                    for row in self._read_batch(late_records_path(self._plan, stage), batch_id)
                )
                for stage in self._plan.source_stages
            },
            tuple(
                QuarantinedRow((row["topic"], row["partition"], row["offset"]), row["reason"], batch_id)
                for path in list_quarantine_paths(self._plan)
                for row in self._read_batch(path, batch_id)
            ),
        )

    def _read_batch(self, path: str, batch_id: int) -> list[TableRow]:
        table = self._warehouse / path
        if not is_delta_table(table):
            return []
        batch_rows = open_delta_table(table).to_pyarrow_table(filters=[("batch_id", "=", batch_id)])
        return list(to_rows(batch_rows))

    def _to_late_row(self, stage: Stage, row: TableRow) -> LateRow:
        source = next(each for each in self._plan.sources if topic_of(each) == row["topic"])
        return late_row_from_row(row, source.name, stage.key)


def _to_pane(stage: Stage, row: TableRow) -> Pane:
    pane = pane_from_row(row, stage.key, stage_value_columns(stage))
    values = tuple((name, canonicalize(value)) for name, value in pane.values)
    return replace(pane, key=canonicalize(pane.key), values=values)


def _to_replaced(stage: Stage, row: TableRow) -> ReplacedWindow:
    return ReplacedWindow(
        key=tuple(row[name] for name in stage.key),
        start=to_instant(row["window_start"], -inf),
        end=to_instant(row["window_end"], inf),
        by_start=to_instant(row["replaced_by_start"], -inf),
        by_end=to_instant(row["replaced_by_end"], inf),
        batch=row["batch_id"],
    )
