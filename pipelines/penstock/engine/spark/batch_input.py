"""Reads a micro-batch: one Spark job computes the partials; further jobs fetch single records."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from penstock.engine.batch.batch_input import (
    ACCOUNT_SCHEMA,
    CHECK_COUNTS_SCHEMA,
    LATE_RECORD_SCHEMA,
    CheckedInput,
    IdentifiedInput,
    MultiStageInput,
    RemotePartialsInput,
)
from penstock.engine.batch.excluded_records import ExcludedRecord, SplittableInput
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.record_schemas import QUARANTINED_RECORD_SCHEMA
from penstock.engine.columnar import to_numpy
from penstock.engine.dedup.duplicates import RECORD_IDS_SCHEMA
from penstock.engine.definition.predicates import quote_column
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.spark.aggregate.constant_columns import fetch_rows, find_derived_columns
from penstock.engine.spark.aggregate.key_checks import apply_key_checks, find_key_checks
from penstock.engine.spark.aggregate.part_execution import PersistedPartials, persist_partials
from penstock.engine.spark.aggregate.partials import (
    aggregate_partials,
    assign_windows,
    has_clock_rules,
    judge_event_times,
)
from penstock.engine.spark.aggregate.record_counts import count_excluded_records, observe_records
from penstock.engine.spark.aggregate.shared_scan import (
    FramesByName,
    SchemasByName,
    add_excluded_counts,
    count_records,
    fetch_frames,
    persist_frames,
)
from penstock.engine.spark.parse.avro import WriterSchemas, refuse_unknown_schemas
from penstock.engine.spark.parse.dedup_ids import compute_record_ids, mark_duplicates
from penstock.engine.spark.parse.input_columns import Sources, select_input
from penstock.engine.spark.parse.records import parse_records
from penstock.engine.spark.parse.row_checks import (
    BREAKS_COLUMN,
    assign_check_bits,
    count_broken_checks,
    create_check_observation,
    raise_if_stopping,
    read_observed_breaks,
    select_quarantining,
)
from penstock.engine.spark.plan_cache import AnalyzedPlanCache
from penstock.engine.spark.poison_records import invalidate_excluded, translate_sum_overflow, user_error_text
from penstock.engine.spark.transform.lookup_join import LookupRows, give_no_rows
from penstock.engine.spark.transform.steps import apply_stage_steps, has_transforms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

ResultT = TypeVar("ResultT")
RECORDS_FRAME = "/records"
"""The key of the record counts among the frames of stages; the name of a stage has no slash."""
SMALL_BATCH_RECORDS = 20_000
"""Up to this many records, one task runs the whole batch: starting more tasks costs more than they save."""


@dataclass(frozen=True)
class SparkBatchInput(SplittableInput, RemotePartialsInput, MultiStageInput, IdentifiedInput, CheckedInput):
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
    broken_checks: list[pa.Table] = field(default_factory=list, compare=False)
    """The counts of failed checks, filled when the partials are computed."""
    other_stages: tuple[CompiledStage, ...] = ()
    """Further stages that read the records in the same pass."""
    writer_schemas: WriterSchemas = field(default_factory=dict)
    """The writer schemas of inputs in Avro, by topic."""
    fetched_partials: dict[str, pa.Table] = field(default_factory=dict, compare=False)
    """The partials of all stages by name, filled by the shared pass."""
    plan_cache: AnalyzedPlanCache = field(default_factory=AnalyzedPlanCache, compare=False)
    """The analyzed plans of earlier batches of the stream."""

    def compute_partials(self) -> pa.Table:
        """Run the batch's job and fetch the partials of the stage."""
        name = self.stage.plan.name
        if self.other_stages and not self.fetched_partials:
            with translate_sum_overflow():
                self.fetched_partials.update(self._fetch_all_stages())
        if name in self.fetched_partials:
            return self.fetched_partials[name]
        with translate_sum_overflow():
            if self._is_cacheable:
                refuse_unknown_schemas(self.raw, self.writer_schemas)
                try:
                    return self._fetch_cacheable_partials()
                except Exception as problem:
                    # Records that a check quarantines may overflow a sum here. If so, check each record.
                    if not (
                        user_error_text(problem) and select_quarantining(assign_check_bits(self.sources))
                    ):
                        raise
            observation = create_check_observation(self.sources)
            partials = self._fetch_partials_with_counts(observation)
            self._record_broken_checks(read_observed_breaks(observation))
            return partials

    def inputs_of_other_stages(self) -> "dict[str, SparkBatchInput]":
        """Return the same records as inputs of the other stages; one job computes the partials of all."""
        return {
            other_stage.plan.name: replace(self, stage=other_stage, other_stages=())
            for other_stage in self.other_stages
        }

    def count_failed_checks(self) -> pa.Table:
        """Return the number of records that fail each check."""
        return self.broken_checks[-1] if self.broken_checks else CHECK_COUNTS_SCHEMA.empty_table()

    def compute_remote_partials(self) -> dict[str, PersistedPartials]:
        """Run the batch's job and keep the partials in the executors."""
        with translate_sum_overflow():
            if self.other_stages:
                return self._persist_all_stages()
            observation = create_check_observation(self.sources)
            persisted = self._persist_partials(observation)
            self._record_broken_checks(read_observed_breaks(observation))
            return {self.stage.plan.name: persisted}

    def read_invalid_records(self) -> pa.Table:
        """Fetch the invalid records, byte for byte as they are in the topic."""
        invalid_rows = self._load_records(with_bytes=True).where("_invalid IS NOT NULL")
        quarantine_rows = invalid_rows.selectExpr(
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_arrived AS arrived",
            "_key AS key",
            "_value AS value",
            "_invalid AS reason",
        )
        return _sort_by_address(
            quarantine_rows.toArrow().select(QUARANTINED_RECORD_SCHEMA.names).cast(QUARANTINED_RECORD_SCHEMA)
        )

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Fetch the records of these windows."""
        windowed_records = assign_windows(self._apply_steps(self._load_records()), self.stage)
        late_windows = self.raw.sparkSession.createDataFrame(windows)
        join_conditions = [
            windowed_records[name].eqNullSafe(late_windows[name]) for name in windows.column_names
        ]
        internal = {
            *windows.column_names[-2:],
            *(name for name in windowed_records.columns if name.startswith("_")),
        }
        fields = ", ".join(quote_column(name) for name in windowed_records.columns if name not in internal)
        late_records = windowed_records.join(
            late_windows.hint("broadcast"), join_conditions, "left_semi"
        ).selectExpr(
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_time AS event_time",
            "window_start",
            "window_end",
            f"to_json(struct({fields})) AS record",
            *(quote_column(field.name) for field in self.stage.key),
        )
        schema = pa.schema([*LATE_RECORD_SCHEMA, *self.stage.key])
        return _sort_by_address(late_records.toArrow().select(schema.names).cast(schema))

    def read_ids(self) -> pa.Table:
        """Fetch the ids of valid records; none for inputs without deduplication."""
        tables = [RECORD_IDS_SCHEMA.empty_table()]
        for source in self.sources:
            if source.deduplication is not None:
                input_records = self._load_records().where(f"_topic = '{topic_of(source)}'")
                own_records = select_input(input_records, source, self.sources)
                tables.append(
                    fetch_rows(
                        compute_record_ids(own_records, source, source.deduplication), RECORD_IDS_SCHEMA, {}
                    )
                )
        return pa.concat_tables(tables)

    def drop_duplicates(self, duplicates: pa.Table) -> "SparkBatchInput":
        """Return the same records with these addresses dropped as duplicates."""
        return replace(self, duplicates=duplicates, fetched_partials={}) if duplicates.num_rows else self

    def _fetch_partials_with_counts(self, observation: "Observation | None") -> pa.Table:
        records = self._coalesce_if_small(self._load_records())
        schema = _partials_schema(self.stage)
        if not self._has_steps:
            return self._fetch_ready_partials(records, observation)
        observed_records, counts = observe_records(records, self.ranges, observation)
        stage_partials = self._fetch_ready_partials(self._apply_steps(observed_records))
        return pa.concat_tables(
            [stage_partials, count_excluded_records(self.ranges, counts.get, stage_partials, schema)]
        )

    def _fetch_ready_partials(
        self, records: "DataFrame", observation: "Observation | None" = None
    ) -> pa.Table:
        """Fetch the partials of records that need no further steps."""
        return self._fetch_partials(
            aggregate_partials(records, self.stage, observation=observation), records.columns
        )

    def _cached_partials_frame(self) -> "DataFrame":
        """Return the partials of a cacheable batch, by the analyzed plan of an earlier batch if there is one."""
        cache_key = (self.stage.plan.name, self._is_small, *self._writer_schema_ids)
        frame = self.plan_cache.apply_plan(self.raw, cache_key)
        if frame is None:
            frame = self._build_cacheable_partials()
            self.plan_cache.store_plan(self.raw, cache_key, frame)
        return frame

    def _build_cacheable_partials(self) -> "DataFrame":
        """Build the partials of a batch whose plan depends neither on its clock nor on single records."""
        parsed = parse_records(self.raw, self.sources, self.writer_schemas)
        deferred_checks = find_key_checks(parsed, self.stage, self.sources)
        if deferred_checks:
            parsed = parse_records(
                self.raw, self.sources, self.writer_schemas, deferred_checks=deferred_checks
            )
        records = self._coalesce_if_small(judge_event_times(parsed, self.sources, clock=0))
        partial_rows = aggregate_partials(
            records, self.stage, with_breaks=bool(assign_check_bits(self.sources))
        )
        return apply_key_checks(partial_rows, deferred_checks, self.stage, self.sources)

    def _fetch_cacheable_partials(self) -> pa.Table:
        """Fetch the partials of a cacheable plan; each row also holds the checks that its records fail."""
        frame = self._cached_partials_frame()
        if not assign_check_bits(self.sources):
            return self._fetch_partials(frame, ())
        partial_rows = fetch_rows(
            frame, _partials_schema(self.stage).append(pa.field(BREAKS_COLUMN, pa.int64())), {}
        )
        self._record_broken_checks(
            int(np.bitwise_or.reduce(to_numpy(partial_rows.column(BREAKS_COLUMN)), initial=0))
        )
        return partial_rows.drop_columns([BREAKS_COLUMN])

    def _fetch_partials(self, frame: "DataFrame", columns: Collection[str]) -> pa.Table:
        """Fetch partials that were computed from records with these columns."""
        topics, has_duplicates = {span.topic for span in self.ranges}, self.duplicates is not None
        derived = find_derived_columns(
            self.stage, self.sources, topics, columns, has_duplicates=has_duplicates
        )
        return fetch_rows(frame, _partials_schema(self.stage), derived)

    def _fetch_all_stages(self) -> dict[str, pa.Table]:
        """Run one job for all stages and fetch their partials."""
        tables = self._run_shared_scan(fetch_frames)
        record_accounts = tables.pop(RECORDS_FRAME)
        return {
            name: self._add_excluded_counts(name, stage_rows, record_accounts)
            for name, stage_rows in tables.items()
        }

    def _persist_all_stages(self) -> dict[str, PersistedPartials]:
        """Run one job for all stages and keep their partials in the executors."""
        persisted = self._run_shared_scan(persist_frames)
        record_accounts = persisted.pop(RECORDS_FRAME).summary
        return {
            name: replace(
                stage_partials,
                summary=self._add_excluded_counts(name, stage_partials.summary, record_accounts),
            )
            for name, stage_partials in persisted.items()
        }

    def _add_excluded_counts(self, name: str, stage_rows: pa.Table, record_accounts: pa.Table) -> pa.Table:
        """Add the counts of records that did not reach a stage to its partials."""
        stage = next(
            candidate for candidate in (self.stage, *self.other_stages) if candidate.plan.name == name
        )
        return add_excluded_counts(stage_rows, record_accounts, self._stage_topics(stage), stage_rows.schema)

    def _run_shared_scan(
        self, run: "Callable[[FramesByName, SchemasByName], dict[str, ResultT]]"
    ) -> "dict[str, ResultT]":
        """Run one job for all stages. A large batch keeps its parsed records in memory meanwhile."""
        records = self._coalesce_if_small(self._load_records())
        scanned = records if self._is_small else records.persist()
        observation = create_check_observation(self.sources)
        stages = {ready_stage.plan.name: ready_stage for ready_stage in (self.stage, *self.other_stages)}
        schemas = {name: _partials_schema(stage) for name, stage in stages.items()}
        frames = {
            name: aggregate_partials(
                apply_stage_steps(scanned, stage.plan, self.sources, self.lookup_rows), stage
            )
            for name, stage in stages.items()
        }
        try:
            results = run(
                {RECORDS_FRAME: count_records(scanned, observation=observation), **frames},
                {RECORDS_FRAME: ACCOUNT_SCHEMA, **schemas},
            )
            self._record_broken_checks(read_observed_breaks(observation))
        finally:
            if scanned is not records:
                scanned.unpersist()
        return results

    def _stage_topics(self, stage: CompiledStage) -> list[str]:
        return [topic_of(source) for source in self.sources if source.name in stage.plan.inputs]

    def _persist_partials(self, observation: "Observation | None") -> PersistedPartials:
        records, schema = self._load_records(), _partials_schema(self.stage)
        if not self._has_steps:
            return persist_partials(aggregate_partials(records, self.stage, observation=observation), schema)
        observed_records, counts = observe_records(records, self.ranges, observation)
        persisted = persist_partials(
            aggregate_partials(self._apply_steps(observed_records), self.stage), schema
        )
        excluded_counts = count_excluded_records(self.ranges, counts.get, persisted.summary, ACCOUNT_SCHEMA)
        return replace(persisted, summary=pa.concat_tables([persisted.summary, excluded_counts]))

    def _record_broken_checks(self, broken_bits: int | None) -> None:
        """Count failed checks after the job; raise CheckFailedError if one of them stops the stream."""
        if assign_check_bits(self.sources):
            self.broken_checks.append(count_broken_checks(broken_bits, self._load_records, self.sources))
            raise_if_stopping(self.count_failed_checks(), self._load_records, self.sources)

    def describe_user_error(self, problem: BaseException) -> str:
        """Return the error text of user code; empty when the problem has another cause."""
        return user_error_text(problem)

    def restrict_to(self, spans: tuple[OffsetRange, ...]) -> "SparkBatchInput":
        """Return only the records of these ranges."""
        range_condition = " OR ".join(
            f"(topic = '{span.topic}' AND partition = {span.partition} "
            f"AND offset >= {span.start} AND offset < {span.end})"
            for span in spans
        )
        return replace(
            self, raw=self.raw.where(range_condition), ranges=spans, broken_checks=[], fetched_partials={}
        )

    def exclude_records(self, poisoned: Sequence[ExcludedRecord]) -> "SparkBatchInput":
        """Return the same records with these marked as invalid."""
        return replace(self, excluded_records=tuple(poisoned), broken_checks=[], fetched_partials={})

    @property
    def _has_steps(self) -> bool:
        return has_transforms(self.stage.plan, self.sources)

    @property
    def _is_cacheable(self) -> bool:
        """Whether the plan over the records is the same in every batch of the stream."""
        depends_on_clock = (
            self.stage.uses_processing_time
            or has_clock_rules(self.sources)
            or not isinstance(self.clock, int)
        )
        has_exclusions = self.duplicates is not None or bool(self.excluded_records)
        runs_user_code = self._has_steps or any(part.finish_raw is not None for part in self.stage.parts)
        checks_single_records = self.stage.is_ordered and bool(
            assign_check_bits(self.sources)
        )  # the cached plan would have to fetch the failed checks of each record
        return not (depends_on_clock or has_exclusions or runs_user_code or checks_single_records)

    @property
    def _writer_schema_ids(self) -> list[tuple[str, ...]]:
        """The ids of the writer schemas that are known now, by topic."""
        return [(topic, *map(str, written.schemas)) for topic, written in self.writer_schemas.items()]

    @property
    def _is_small(self) -> bool:
        return sum(span.end - span.start for span in self.ranges) <= SMALL_BATCH_RECORDS

    def _apply_steps(self, records: "DataFrame") -> "DataFrame":
        """Return the included records after the steps of the stage."""
        return apply_stage_steps(records, self.stage.plan, self.sources, self.lookup_rows)

    def _coalesce_if_small(self, records: "DataFrame") -> "DataFrame":
        return records.coalesce(1) if self._is_small else records

    def _load_records(self, *, with_bytes: bool = False) -> "DataFrame":
        records = judge_event_times(self._parse_raw(with_bytes=with_bytes), self.sources, self.clock)
        return mark_duplicates(records, self.duplicates) if self.duplicates is not None else records

    def _parse_raw(self, *, with_bytes: bool) -> "DataFrame":
        refuse_unknown_schemas(self.raw, self.writer_schemas)
        cache_key = (RECORDS_FRAME, with_bytes, *self._writer_schema_ids)
        records = self.plan_cache.apply_plan(self.raw, cache_key)
        if records is None:
            records = parse_records(self.raw, self.sources, self.writer_schemas, with_bytes=with_bytes)
            self.plan_cache.store_plan(self.raw, cache_key, records)
        return invalidate_excluded(records, self.excluded_records)


def _partials_schema(stage: CompiledStage) -> pa.Schema:
    """Return the schema of a stage's partials."""
    return pa.schema([*ACCOUNT_SCHEMA, *stage.partial_schema])


def _sort_by_address(rows: pa.Table) -> pa.Table:
    """Sort by address, so that a batch that runs again writes the same file."""
    sort_columns = ("topic", "partition", "offset", "window_start")
    return rows.sort_by([(name, "ascending") for name in sort_columns if name in rows.column_names])
