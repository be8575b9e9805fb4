"""Computes the partials of several stages over a micro-batch in one pass over its records."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.spark.aggregate.part_execution import PersistedPartials
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.aggregate.shared_scan import (
    FramesByName,
    SchemasByName,
    add_excluded_counts,
    count_records,
    fetch_frames,
    persist_frames,
)
from penstock.engine.spark.batch_records import BatchRecords, partials_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

ResultT = TypeVar("ResultT")
RECORDS_FRAME = "/records"
"""The key of the record counts among the frames of stages; the name of a stage has no slash."""


@contextmanager
def load_once(batch: BatchRecords) -> Iterator["DataFrame"]:
    """Yield the parsed records. Those of a large batch are kept in memory meanwhile."""
    records = batch.coalesce_if_small(batch.load())
    scanned = records if batch.is_small else records.persist()
    try:
        yield scanned
    finally:
        if scanned is not records:
            scanned.unpersist()


def fetch_all_partials(
    batch: BatchRecords, records: "DataFrame", observation: "Observation | None"
) -> dict[str, pa.Table]:
    """Run one job over the parsed records, and fetch the partials of each stage."""
    tables = _run_all_stages(batch, records, observation, fetch_frames)
    record_accounts = tables.pop(RECORDS_FRAME)
    return {
        name: _add_excluded_counts(batch, name, stage_rows, record_accounts)
        for name, stage_rows in tables.items()
    }


def persist_all_partials(
    batch: BatchRecords, records: "DataFrame", observation: "Observation | None"
) -> dict[str, PersistedPartials]:
    """Run one job over the parsed records, and keep the partials of each stage in the executors."""
    persisted = _run_all_stages(batch, records, observation, persist_frames)
    record_accounts = persisted.pop(RECORDS_FRAME).summary
    return {
        name: replace(partials, summary=_add_excluded_counts(batch, name, partials.summary, record_accounts))
        for name, partials in persisted.items()
    }


def stage_topics(batch: BatchRecords, stage: CompiledStage) -> list[str]:
    """Return the topics that a stage reads."""
    return [topic_of(source) for source in batch.sources if source.name in stage.plan.inputs]


def _run_all_stages(
    batch: BatchRecords,
    records: "DataFrame",
    observation: "Observation | None",
    run: "Callable[[FramesByName, SchemasByName], dict[str, ResultT]]",
) -> "dict[str, ResultT]":
    stages = _stages_by_name(batch)
    frames = {
        name: aggregate_partials(batch.apply_steps(records, stage), stage) for name, stage in stages.items()
    }
    schemas = {name: partials_schema(stage) for name, stage in stages.items()}
    return run(
        {RECORDS_FRAME: count_records(records, observation=observation), **frames},
        {RECORDS_FRAME: ACCOUNT_SCHEMA, **schemas},
    )


def _add_excluded_counts(
    batch: BatchRecords, name: str, stage_rows: pa.Table, record_accounts: pa.Table
) -> pa.Table:
    """Add the counts of records that did not reach a stage to its partials."""
    topics = stage_topics(batch, _stages_by_name(batch)[name])
    return add_excluded_counts(stage_rows, record_accounts, topics, stage_rows.schema)


def _stages_by_name(batch: BatchRecords) -> dict[str, CompiledStage]:
    return {stage.plan.name: stage for stage in (batch.stage, *batch.other_stages)}
