"""Evaluate a plan on Spark and on the reference, as panes or text that can be compared."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.pipelines.memory_topics import TOPIC_ROW_DDL

from penstock.conformance.on_spark.table_reader import pane_from_row, to_rows
from penstock.conformance.reference import Evaluator, InputBatch, Pane
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.conformance.reference.steps import StepFunction
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.history.reexecute import BatchToReexecute, merge_ranges, reexecute_batches
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.engine.spark.multi_batch_input import BatchRanges
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INFINITE = float("inf")
PaneTexts = list[list[str]]
"""For each batch its panes as text, sorted."""


def evaluate_on_spark(
    session: "SparkSession", plan: Plan, batches: Sequence[InputBatch], folder: Path
) -> list[list[Pane]]:
    """Return the panes of the first stage, batch by batch."""
    topics = {source.name: topic_of(source) for source in plan.sources}
    rows = [
        (None, encode_fields(record.fields), topics[record.source], 0, record.offset, None)
        for batch in batches
        for record in batch.records
    ]
    reruns = [
        BatchToReexecute(batch.clock, offset_ranges(batch, topics), watermark_of(batch)) for batch in batches
    ]
    all_ranges = merge_ranges([BatchRanges(0, 0, each.ranges) for each in reruns])
    memory_source = InMemorySource(session.createDataFrame(rows, TOPIC_ROW_DDL), all_ranges)
    panes = reexecute_batches(plan, session, memory_source, reruns, folder, lambda _: None).panes_of(
        plan.first_source_stage.name
    )
    found: list[list[Pane]] = [[] for _ in batches]
    for row in to_rows(panes):
        if row["kind"] != "replaced":
            found[row["batch_id"]].append(parse_pane(plan, row))
    return found


def encode_fields(fields: Mapping[str, Any]) -> bytes:
    """Encode a record in JSON, with NaN as text: JSON has no such number."""
    values = {
        name: "NaN" if isinstance(value, float) and isnan(value) else value for name, value in fields.items()
    }
    return json.dumps(values).encode()


def describe_spark_panes(
    session: "SparkSession", plan: Plan, batches: Sequence[InputBatch], folder: Path
) -> PaneTexts:
    return [sorted(map(describe_pane, panes)) for panes in evaluate_on_spark(session, plan, batches, folder)]


def describe_reference_panes(
    plan: Plan, batches: Sequence[InputBatch], steps: StepFunction | None = None
) -> PaneTexts:
    evaluator = Evaluator(plan, steps)
    return [sorted(map(describe_pane, evaluator.run(batch).panes)) for batch in batches]


def offset_ranges(batch: InputBatch, topics: Mapping[str, str]) -> tuple[OffsetRange, ...]:
    found = []
    for source in dict.fromkeys(record.source for record in batch.records):
        offsets = [record.offset for record in batch.records if record.source == source]
        found.append(OffsetRange(topics[source], 0, min(offsets), max(offsets) + 1))
    return tuple(found)


def watermark_of(batch: InputBatch) -> int | None:
    return MAX_TIMESTAMP_MS if batch.is_last else None if batch.watermark is None else int(batch.watermark)


def parse_pane(plan: Plan, row: Mapping[str, Any]) -> Pane:
    found = pane_from_row(row, plan.first_source_stage.key, stage_value_columns(plan.first_source_stage))
    values = tuple((name, canonicalize(as_tuples(value))) for name, value in found.values)
    return replace(found, key=canonicalize(found.key), values=values)


def as_tuples(value: Any) -> Any:
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


def describe_pane(pane: Pane) -> str:
    """Describe a pane. Tables cannot tell an infinite watermark from a negative infinite one."""
    watermark = INFINITE if isinf(pane.watermark) else pane.watermark
    return repr(replace(pane, watermark=watermark, is_restatement=False))
