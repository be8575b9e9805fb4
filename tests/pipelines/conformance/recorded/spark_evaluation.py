"""Plans over batches of records by Spark and the batch engine, in the words of the reference evaluator."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isinf
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
from penstock.engine.plan import Plan
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.engine.spark.multi_batch_input import BatchRanges
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INFINITE = float("inf")
Shown = list[list[str]]
"""For each batch its panes as text, in an order of their own."""


def by_spark(
    session: "SparkSession", plan: Plan, batches: Sequence[InputBatch], folder: Path
) -> list[list[Pane]]:
    """The panes of the first stage, batch by batch."""
    topics = {source.name: topic_of(source) for source in plan.sources}
    rows = [
        (None, json.dumps(record.fields).encode(), topics[record.source], 0, record.offset, None)
        for batch in batches
        for record in batch.records
    ]
    reruns = [BatchToReexecute(batch.clock, spans(batch, topics), watermark(batch)) for batch in batches]
    everything = merge_ranges([BatchRanges(0, 0, each.ranges) for each in reruns])
    held = InMemorySource(session.createDataFrame(rows, TOPIC_ROW_DDL), everything)
    kept = reexecute_batches(plan, session, held, reruns, folder, lambda _: None).panes_of(
        plan.first_source_stage.name
    )
    found: list[list[Pane]] = [[] for _ in batches]
    for row in to_rows(kept):
        if row["kind"] != "replaced":
            found[row["batch_id"]].append(pane(plan, row))
    return found


def said_by_spark(session: "SparkSession", plan: Plan, batches: Sequence[InputBatch], folder: Path) -> Shown:
    return [sorted(map(text, panes)) for panes in by_spark(session, plan, batches, folder)]


def said_by_reference(plan: Plan, batches: Sequence[InputBatch], steps: StepFunction | None = None) -> Shown:
    evaluator = Evaluator(plan, steps)
    return [sorted(map(text, evaluator.run(batch).panes)) for batch in batches]


def spans(batch: InputBatch, topics: Mapping[str, str]) -> tuple[OffsetRange, ...]:
    found = []
    for source in dict.fromkeys(record.source for record in batch.records):
        offsets = [record.offset for record in batch.records if record.source == source]
        found.append(OffsetRange(topics[source], 0, min(offsets), max(offsets) + 1))
    return tuple(found)


def watermark(batch: InputBatch) -> int | None:
    return MAX_TIMESTAMP_MS if batch.is_last else None if batch.watermark is None else int(batch.watermark)


def pane(plan: Plan, row: Mapping[str, Any]) -> Pane:
    found = pane_from_row(row, plan.first_source_stage.key, stage_value_columns(plan.first_source_stage))
    values = tuple((name, canonicalize(nested(value))) for name, value in found.values)
    return replace(found, key=canonicalize(found.key), values=values)


def nested(value: Any) -> Any:
    return tuple(map(nested, value)) if isinstance(value, list | tuple) else value


def text(shown: Pane) -> str:
    """A pane; a watermark before all records and one after them are no time that a table can show."""
    told = INFINITE if isinf(shown.watermark) else shown.watermark
    return repr(replace(shown, watermark=told, is_restatement=False))
