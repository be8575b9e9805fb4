"""The records of a micro-batch as Spark reads them: parsed, judged by time, and without duplicates."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA
from penstock.engine.batch.excluded_records import ExcludedRecord
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.spark.aggregate.event_times import judge_event_times
from penstock.engine.spark.parse.dedup_ids import mark_duplicates
from penstock.engine.spark.parse.input_columns import Sources
from penstock.engine.spark.parse.record_parser import WriterSchemas
from penstock.engine.spark.parse.records import parse_records
from penstock.engine.spark.parse.suspects import JudgeMode
from penstock.engine.spark.parse.writer_schemas import refuse_unknown_schemas
from penstock.engine.spark.plan_cache import AnalyzedPlanCache
from penstock.engine.spark.poison_records import invalidate_excluded
from penstock.engine.spark.transform.lookup_join import LookupRows, give_no_rows
from penstock.engine.spark.transform.steps import apply_stage_steps, has_transforms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL_BATCH_RECORDS = 20_000
"""Up to this many records, one task runs the whole batch: starting more tasks costs more than they save."""


@dataclass(frozen=True)
class BatchRecords:
    """The records of one micro-batch of one or several topics."""

    raw: "DataFrame"
    sources: Sources
    stage: CompiledStage
    clock: int | str
    """The clock of the batch, or an SQL expression for the clock of each record when batches share a job."""
    ranges: tuple[OffsetRange, ...]
    duplicates: pa.Table | None = None
    excluded_records: tuple[ExcludedRecord, ...] = ()
    lookup_rows: LookupRows = give_no_rows
    """Returns the rows of lookup tables at the versions that the batch sees."""
    other_stages: tuple[CompiledStage, ...] = ()
    """Further stages that read the records in the same pass."""
    writer_schemas: WriterSchemas = field(default_factory=dict)
    """The writer schemas of inputs in Avro, by topic."""
    plan_cache: AnalyzedPlanCache = field(default_factory=AnalyzedPlanCache, compare=False)
    """The analyzed plans of earlier batches of the stream."""
    judge_mode: JudgeMode = field(default_factory=JudgeMode, compare=False)
    """Whether the plans contain the judge of records; shared by the batches of the stream."""

    def load(self, *, with_bytes: bool = False) -> "DataFrame":
        """Return the parsed records with their fates; `with_bytes` adds them as they are in the topic."""
        records = judge_event_times(self.parse(with_bytes=with_bytes), self.sources, self.clock)
        return mark_duplicates(records, self.duplicates) if self.duplicates is not None else records

    def parse(self, *, with_bytes: bool) -> "DataFrame":
        """Return the parsed records."""
        refuse_unknown_schemas(self.raw, self.writer_schemas)
        with_judge = self.judge_mode.is_on
        cache_key = ("/records", with_bytes, with_judge, *self.writer_schema_ids)
        records = self.plan_cache.apply_plan(self.raw, cache_key)
        if records is None:
            records = parse_records(
                self.raw, self.sources, self.writer_schemas, with_bytes=with_bytes, with_judge=with_judge
            )
            self.plan_cache.store_plan(self.raw, cache_key, records)
        return invalidate_excluded(records, self.excluded_records)

    def apply_steps(self, records: "DataFrame", stage: CompiledStage) -> "DataFrame":
        """Return the included records after the steps of a stage."""
        return apply_stage_steps(records, stage.plan, self.sources, self.lookup_rows)

    def coalesce_if_small(self, records: "DataFrame") -> "DataFrame":
        """Return the records of a small batch as one task."""
        return records.coalesce(1) if self.is_small else records

    @property
    def is_small(self) -> bool:
        """Whether one task runs the whole batch."""
        return sum(span.end - span.start for span in self.ranges) <= SMALL_BATCH_RECORDS

    @property
    def has_steps(self) -> bool:
        """Whether the stage has steps before its windows."""
        return has_transforms(self.stage.plan, self.sources)

    @property
    def writer_schema_ids(self) -> list[tuple[str, ...]]:
        """The ids of the writer schemas that are known now, by topic."""
        return [(topic, *map(str, written.schemas)) for topic, written in self.writer_schemas.items()]


def partials_schema(stage: CompiledStage) -> pa.Schema:
    """Return the schema of a stage's partials."""
    return pa.schema([*ACCOUNT_SCHEMA, *stage.partial_schema])
