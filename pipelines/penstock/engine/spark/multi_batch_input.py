"""Reads the records of several batches in one job; the address of a record gives its batch and clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.aggregate.shared_scan import add_excluded_counts, count_records
from penstock.engine.spark.all_stage_partials import stage_topics
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.batch_records import partials_schema
from penstock.engine.spark.transform.steps import has_transforms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_COLUMN = "_batch"
ADDRESS_COLUMNS = ("_topic", "_partition", "_offset")


@dataclass(frozen=True)
class BatchRanges:
    """The number, clock and offset ranges of a batch."""

    batch_number: int
    clock_ms: int
    ranges: tuple[OffsetRange, ...]


@dataclass(frozen=True)
class MultiBatchInput(SparkBatchInput):
    """The records of many batches. It runs the jobs of a single batch, grouped by batch in addition."""

    batches: Sequence[BatchRanges] = field(default=(), compare=False)

    def partials_of_batch(self, batch: BatchRanges, stage: CompiledStage) -> pa.Table:
        """Return the partials that a job over this batch alone would give a stage."""
        schema = partials_schema(stage)
        stage_partials = _rows_of_batch(self._fetch_stage_partials(stage), batch).select(schema.names)
        if not self._needs_accounts(stage):
            return stage_partials
        return add_excluded_counts(
            stage_partials,
            _rows_of_batch(self._record_accounts, batch).drop_columns([BATCH_COLUMN]),
            stage_topics(self, stage),
            schema,
        )

    def isolate_batch(self, batch: BatchRanges, duplicates: pa.Table) -> "MultiBatchInput":
        """Return the records of one batch for a separate job, with these addresses dropped as duplicates."""
        raw = self.restrict_to(batch.ranges).raw
        return replace(
            self, raw=raw, ranges=batch.ranges, batches=(batch,), duplicates=duplicates, fetched_partials={}
        )

    @cached_property
    def all_ids(self) -> pa.Table:
        """The ids of the records of all batches."""
        return self.read_ids()

    def _needs_accounts(self, stage: CompiledStage) -> bool:
        """Whether the counts of all records are needed to find how many did not reach a stage."""
        return bool(self.other_stages) or has_transforms(stage.plan, self.sources)

    def _fetch_stage_partials(self, stage: CompiledStage) -> pa.Table:
        """Return the partials of a stage for all batches, excluded records included."""
        name = stage.plan.name
        if name not in self.fetched_partials:
            schema = pa.schema([pa.field(BATCH_COLUMN, pa.int64()), *partials_schema(stage)])
            records = self.coalesce_if_small(self.load())
            if self._needs_accounts(stage):
                records = self.apply_steps(records, stage)
            partial_rows = aggregate_partials(records, stage, (BATCH_COLUMN,)).toArrow()
            self.fetched_partials[name] = partial_rows.select(schema.names).cast(schema)
        return self.fetched_partials[name]

    @cached_property
    def _record_accounts(self) -> pa.Table:
        """The number of records that each batch read of each partition, by fate."""
        schema = pa.schema([pa.field(BATCH_COLUMN, pa.int64()), *ACCOUNT_SCHEMA])
        return count_records(self.load(), (BATCH_COLUMN,)).toArrow().select(schema.names).cast(schema)

    def parse(self, *, with_bytes: bool) -> "DataFrame":
        """Parse the records of the batches; each gets the number and the clock of its batch."""
        records = super().parse(with_bytes=with_bytes)
        rows = [
            (batch.batch_number, batch.clock_ms, span.topic, span.partition, span.start, span.end - 1)
            for batch in self.batches
            for span in batch.ranges
            if span.end > span.start
        ]
        schema = (
            f"{BATCH_COLUMN} BIGINT, _batch_clock BIGINT, "
            "_topic STRING, _partition INT, _first BIGINT, _to BIGINT"
        )
        batch_spans = records.sparkSession.createDataFrame(rows, schema)
        batch_addresses = batch_spans.selectExpr(
            BATCH_COLUMN, "_batch_clock", "_topic", "_partition", "explode(sequence(_first, _to)) AS _offset"
        )
        return records.join(batch_addresses.hint("broadcast"), list(ADDRESS_COLUMNS))


def _rows_of_batch(rows: pa.Table, batch: BatchRanges) -> pa.Table:
    """Return the rows of a batch."""
    return rows.filter(pc.equal(rows.column(BATCH_COLUMN), batch.batch_number))
