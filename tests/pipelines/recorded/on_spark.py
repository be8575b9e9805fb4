"""Plans over batches of records by Spark and the batch engine, in the words of the reference evaluator."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.pipelines.stored import SCHEMA, Held

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.plan import Plan
from penstock.pipelines.plan.columns import values_of
from penstock.pipelines.reference import Batch, Evaluator, Pane
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.steps import Steps
from penstock.pipelines.spark.rerun import Rerun, over_all, rerun
from penstock.pipelines.spark.shared import Spans
from penstock.pipelines.state.columns import NEVER
from penstock.pipelines.transcripts.on_spark.tables import pane_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INFINITE = float("inf")
Shown = list[list[str]]
"""For each batch its panes as text, in an order of their own."""


def by_spark(session: "SparkSession", plan: Plan, batches: Sequence[Batch], folder: Path) -> list[list[Pane]]:
    """The panes of the first stage, batch by batch."""
    topics = {source.name: topic_of(source) for source in plan.sources}
    rows = [
        (None, json.dumps(record.fields).encode(), topics[record.source], 0, record.offset, None)
        for batch in batches
        for record in batch.records
    ]
    reruns = [Rerun(batch.clock, spans(batch, topics), watermark(batch)) for batch in batches]
    everything = over_all([Spans(0, 0, each.ranges) for each in reruns])
    held = Held(session.createDataFrame(rows, SCHEMA), everything)
    kept = rerun(plan, session, held, reruns, folder, lambda _: None).of(plan.first.name)
    found: list[list[Pane]] = [[] for _ in batches]
    for row in rows_of(kept):
        if row["kind"] != "replaced":
            found[row["batch_id"]].append(pane(plan, row))
    return found


def said_by_spark(session: "SparkSession", plan: Plan, batches: Sequence[Batch], folder: Path) -> Shown:
    return [sorted(map(text, panes)) for panes in by_spark(session, plan, batches, folder)]


def said_by_reference(plan: Plan, batches: Sequence[Batch], steps: Steps | None = None) -> Shown:
    evaluator = Evaluator(plan, steps)
    return [sorted(map(text, evaluator.run(batch).panes)) for batch in batches]


def spans(batch: Batch, topics: Mapping[str, str]) -> tuple[Range, ...]:
    found = []
    for source in dict.fromkeys(record.source for record in batch.records):
        offsets = [record.offset for record in batch.records if record.source == source]
        found.append(Range(topics[source], 0, min(offsets), max(offsets) + 1))
    return tuple(found)


def watermark(batch: Batch) -> int | None:
    return NEVER if batch.ends else None if batch.watermark is None else int(batch.watermark)


def pane(plan: Plan, row: Mapping[str, Any]) -> Pane:
    found = pane_of(row, plan.first.key, values_of(plan.first))
    values = tuple((name, canonical(nested(value))) for name, value in found.values)
    return replace(found, key=canonical(found.key), values=values)


def nested(value: Any) -> Any:
    return tuple(map(nested, value)) if isinstance(value, list | tuple) else value


def text(shown: Pane) -> str:
    """A pane; a watermark before all records and one after them are no time that a table can show."""
    told = INFINITE if isinf(shown.watermark) else shown.watermark
    return repr(replace(shown, watermark=told, restates=False))
