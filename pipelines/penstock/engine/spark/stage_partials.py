"""Computes the partials of one stage over a micro-batch: by a cached plan, fetched, or kept in the executors."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA
from penstock.engine.columnar import to_numpy
from penstock.engine.spark.aggregate.constant_columns import fetch_rows, find_derived_columns
from penstock.engine.spark.aggregate.event_times import has_future_times, judge_no_event_times
from penstock.engine.spark.aggregate.key_checks import apply_key_checks, find_key_checks
from penstock.engine.spark.aggregate.part_execution import PersistedPartials, persist_partials
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.aggregate.record_counts import count_excluded_records, observe_records
from penstock.engine.spark.batch_records import BatchRecords, partials_schema
from penstock.engine.spark.parse.records import parse_records
from penstock.engine.spark.parse.row_checks import BREAKS_COLUMN, assign_check_bits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def has_cacheable_plan(batch: BatchRecords) -> bool:
    """Whether the plan over the records is the same in every batch of the stream, unless one is too far ahead."""
    stage, sources = batch.stage, batch.sources
    depends_on_clock = stage.uses_processing_time or not isinstance(batch.clock, int)
    has_exclusions = batch.duplicates is not None or bool(batch.excluded_records)
    runs_user_code = batch.has_steps or any(part.finish_raw is not None for part in stage.parts)
    checks_single_records = stage.is_ordered and bool(
        assign_check_bits(sources)
    )  # the cached plan would have to fetch the failed checks of each record
    return not (depends_on_clock or has_exclusions or runs_user_code or checks_single_records)


def fetch_by_cached_plan(batch: BatchRecords) -> tuple[pa.Table, int | None] | None:
    """Fetch the partials by the analyzed plan of an earlier batch; return them with the checks that failed.

    Return None if an event time is too far ahead of the batch time: the plan does not judge them.
    """
    partials, broken_bits = _fetch_unjudged(batch)
    if isinstance(batch.clock, int) and has_future_times(partials, batch.sources, batch.clock):
        return None
    return partials, broken_bits


def _fetch_unjudged(batch: BatchRecords) -> tuple[pa.Table, int | None]:
    cache_key = (batch.stage.plan.name, batch.is_small, batch.judge_mode.is_on, *batch.writer_schema_ids)
    frame = batch.plan_cache.apply_plan(batch.raw, cache_key)
    if frame is None:
        frame = _build_cacheable_frame(batch)
        batch.plan_cache.store_plan(batch.raw, cache_key, frame)
    if not assign_check_bits(batch.sources):
        return _fetch_partials(batch, frame, ()), None
    # Each row also has the checks that its records fail.
    schema = partials_schema(batch.stage).append(pa.field(BREAKS_COLUMN, pa.int64()))
    rows = fetch_rows(frame, schema, {})
    broken_bits = np.bitwise_or.reduce(to_numpy(rows.column(BREAKS_COLUMN)), initial=0)
    return rows.drop_columns([BREAKS_COLUMN]), int(broken_bits)


def fetch_partials(batch: BatchRecords, observation: "Observation | None") -> pa.Table:
    """Run the batch's job and fetch the partials; `observation` collects the checks that failed."""
    records = batch.coalesce_if_small(batch.load())
    if not batch.has_steps:
        frame = aggregate_partials(records, batch.stage, observation=observation)
        return _fetch_partials(batch, frame, records.columns)
    observed_records, counts = observe_records(records, batch.ranges, observation)
    ready_records = batch.apply_steps(observed_records, batch.stage)
    partials = _fetch_partials(batch, aggregate_partials(ready_records, batch.stage), ready_records.columns)
    excluded = count_excluded_records(batch.ranges, counts.get, partials, partials_schema(batch.stage))
    return pa.concat_tables([partials, excluded])


def persist_stage_partials(batch: BatchRecords, observation: "Observation | None") -> PersistedPartials:
    """Run the batch's job and keep the partials in the executors."""
    records, schema = batch.load(), partials_schema(batch.stage)
    if not batch.has_steps:
        return persist_partials(aggregate_partials(records, batch.stage, observation=observation), schema)
    observed_records, counts = observe_records(records, batch.ranges, observation)
    ready_records = batch.apply_steps(observed_records, batch.stage)
    persisted = persist_partials(aggregate_partials(ready_records, batch.stage), schema)
    excluded = count_excluded_records(batch.ranges, counts.get, persisted.summary, ACCOUNT_SCHEMA)
    return replace(persisted, summary=pa.concat_tables([persisted.summary, excluded]))


def _build_cacheable_frame(batch: BatchRecords) -> "DataFrame":
    """Build partials by a plan that depends neither on the clock of the batch nor on single records."""
    stage, sources = batch.stage, batch.sources
    with_judge = batch.judge_mode.is_on
    parsed = parse_records(batch.raw, sources, batch.writer_schemas, with_judge=with_judge)
    deferred_checks = find_key_checks(parsed, stage, sources)
    if deferred_checks:
        parsed = parse_records(
            batch.raw,
            sources,
            batch.writer_schemas,
            deferred_checks=deferred_checks,
            with_judge=with_judge,
        )
    records = batch.coalesce_if_small(judge_no_event_times(parsed, sources))
    frame = aggregate_partials(records, stage, with_breaks=bool(assign_check_bits(sources)))
    return apply_key_checks(frame, deferred_checks, stage, sources)


def _fetch_partials(batch: BatchRecords, frame: "DataFrame", columns: Collection[str]) -> pa.Table:
    """Fetch partials that were computed from records with these columns."""
    topics, has_duplicates = {span.topic for span in batch.ranges}, batch.duplicates is not None
    derived = find_derived_columns(batch.stage, batch.sources, topics, columns, has_duplicates=has_duplicates)
    return fetch_rows(frame, partials_schema(batch.stage), derived)
