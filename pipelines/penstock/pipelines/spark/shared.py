"""Records of several batches in one job: each is told by its address of which batch it is, and by what clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.spark.one_pass import accounted, with_the_rest
from penstock.pipelines.spark.partials import partials
from penstock.pipelines.spark.reading import SparkReading
from penstock.pipelines.spark.steps import needs_steps, stepped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH = "_batch"
ADDRESS = ("_topic", "_partition", "_offset")


@dataclass(frozen=True)
class Spans:
    """What a batch read, by its number, and its clock."""

    batch: int
    clock: int
    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class SharedReading(SparkReading):
    """Records of many batches. Its jobs are those of one batch, code for code, grouped by batch besides."""

    batches: Sequence[Spans] = field(default=(), compare=False)

    def share(self, batch: Spans, stage: ReadyStage) -> pa.Table:
        """What a job over the records of this batch alone would say to a stage."""
        schema = pa.schema([*ACCOUNT_COLUMNS, *stage.partial_columns])
        passed = _of(self._passed(stage), batch).select(schema.names)
        if not self._has_rest(stage):
            return passed
        topics = [topic_of(source) for source in self.sources if source.name in stage.plan.inputs]
        return with_the_rest(passed, _of(self._accounts, batch).drop_columns([BATCH]), topics, schema)

    def alone(self, batch: Spans, repeats: pa.Table) -> "SharedReading":
        """The records of one batch, for a job of their own, of which these are set aside as repeats."""
        raw = self.only(batch.ranges).raw
        return replace(self, raw=raw, ranges=batch.ranges, batches=(batch,), repeats=repeats, fetched={})

    @cached_property
    def all_ids(self) -> pa.Table:
        """The ids of the records of all batches."""
        return self.ids()

    def _has_rest(self, stage: ReadyStage) -> bool:
        """Whether records may be kept from a stage by what only the account of all records tells."""
        return bool(self.others) or needs_steps(stage.plan, self.sources)

    def _passed(self, stage: ReadyStage) -> pa.Table:
        """What reached a window of a stage, or was set aside before it, batch by batch."""
        name = stage.plan.name
        if name not in self.fetched:
            schema = pa.schema([pa.field(BATCH, pa.int64()), *ACCOUNT_COLUMNS, *stage.partial_columns])
            records = self._in_tasks(self._records())
            if self._has_rest(stage):
                records = stepped(records, stage.plan, self.sources, self.found)
            made = partials(records, stage, (BATCH,)).toArrow()
            self.fetched[name] = made.select(schema.names).cast(schema)
        return self.fetched[name]

    @cached_property
    def _accounts(self) -> pa.Table:
        """How many records each batch read of each partition, and what was set aside of them."""
        schema = pa.schema([pa.field(BATCH, pa.int64()), *ACCOUNT_COLUMNS])
        return accounted(self._records(), (BATCH,)).toArrow().select(schema.names).cast(schema)

    def _judged(self, *, bytes_too: bool) -> "DataFrame":
        """Records that were judged, each with its batch and the clock of that; others are left out."""
        records = super()._judged(bytes_too=bytes_too)
        rows = [
            (one.batch, one.clock, span.topic, span.partition, span.start, span.end - 1)
            for one in self.batches
            for span in one.ranges
            if span.end > span.start
        ]
        schema = (
            f"{BATCH} BIGINT, _batch_clock BIGINT, _topic STRING, _partition INT, _first BIGINT, _to BIGINT"
        )
        spans = records.sparkSession.createDataFrame(rows, schema)
        placed = spans.selectExpr(
            BATCH, "_batch_clock", "_topic", "_partition", "explode(sequence(_first, _to)) AS _offset"
        )
        return records.join(placed.hint("broadcast"), list(ADDRESS))


def _of(rows: pa.Table, batch: Spans) -> pa.Table:
    """The rows of a batch."""
    return rows.filter(pc.equal(rows.column(BATCH), batch.batch))
