"""Stateful functions of the catalog give the panes of the reference in each batch."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.pipelines.catalog.send_time_batches import START_MS
from tests.pipelines.engine.operators.duckdb_partials import list_elements
from tests.pipelines.engine.operators.test_windows_against_reference import clamp_time, make_pane_row

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.pipelines import catalog

RATE, STEP = 50, 4_000
RECORDS = {"lines": 1_000, "cards": 4_000, "queries": 9_000}
"""How many records each function needs until it emits rows."""
NAMES = [
    name
    for name in catalog.pipeline_names()
    for plan in [catalog.load_plan(name)]
    if len(plan.stages) == 1 and isinstance(plan.stages[0].window, StatefulFunction)
]


def load_without_steps(name: str) -> tuple[Plan, list[dict[str, Any]]]:
    """Return a pipeline without its steps, and generated records that the steps were applied to."""
    plan = catalog.load_plan(name)
    (source,), (stage,) = plan.sources, plan.stages
    made = islice(
        GENERATORS[source.name](3).generate_records(0, make_even_send_times(START_MS, RATE)),
        RECORDS[source.name],
    )
    records = [msgspec.to_builtins(record) for record in made]
    if "word" in stage.key:
        records = [
            {**each, "word": word} for each in records for word in re.findall(r"\w+", each["text"].lower())
        ]
        source = replace(source, columns=(*source.columns, Column("word", "STRING")))
    source = replace(source, deduplication=None)
    return replace(plan, sources=(source,), stages=(replace(stage, steps=()),)), records


def split_by_event_time(topic: str, records: list[dict[str, Any]]) -> Iterator[InputBatch]:
    """Yield a batch for each step of event time, and one that ends the input."""
    steps: dict[int, list[InputRecord]] = {}
    for offset, fields in enumerate(records):
        steps.setdefault((fields["at"] - START_MS) // STEP, []).append(InputRecord(topic, 0, offset, fields))
    newest = START_MS
    for number, step in enumerate(sorted(steps)):
        newest = max(newest, *(record.fields["at"] for record in steps[step]))
        yield InputBatch(number, START_MS + (step + 1) * STEP, tuple(steps[step]), watermark=newest - 2_000)
    yield InputBatch(len(steps), START_MS + (max(steps) + 2) * STEP, (), is_last=True)


@pytest.mark.parametrize("name", NAMES)
def test_each_batch_equals_the_reference(name: str, tmp_path: Path) -> None:
    plan, records = load_without_steps(name)
    (stage,), topic = plan.stages, plan.sources[0].name
    schema = pa.Table.from_pylist(records).schema
    compiled = compile_stage(stage, dict(zip(schema.names, schema.types, strict=True)))
    evaluator, tree = Evaluator(plan), trees.create_empty_tree(compiled.state_schema)
    clock, watermark, row_count = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS, 0
    for batch in split_by_event_time(topic, records):
        next_watermark = MAX_TIMESTAMP_MS if batch.is_last else clamp_time(batch.watermark or 0)
        batch_time = BatchTime(batch.id, clock, batch.clock, watermark, next_watermark)
        outcome = process_batch(compiled, tree, list_elements(compiled, batch.records, "at"), batch_time)
        tree = tree.with_run(outcome.changed_state, tmp_path / f"run-{batch.id}.arrow").compact(tmp_path)
        found = sorted((tuple(pane.values()) for pane in outcome.panes.to_pylist()), key=repr)
        assert found == sorted((make_pane_row(pane) for pane in evaluator.run(batch).panes), key=repr), (
            batch.id
        )
        clock, watermark, row_count = batch.clock, next_watermark, row_count + len(found)
    assert row_count
