"""The engine keeps what shipped functions remember, batch after batch, as the reference does."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.pipelines.catalog.live import BEGAN
from tests.pipelines.fold.partials import elements
from tests.pipelines.fold.test_windows_against_reference import instant, said

from penstock.ingestion.generators import GENERATORS, evenly
from penstock.pipelines import catalog
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ready_stage
from penstock.pipelines.plan import Column, Plan, Remembering
from penstock.pipelines.reference import Batch, Evaluator, Record
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

RATE, STEP = 50, 4_000
RECORDS = {"lines": 1_000, "cards": 4_000, "queries": 9_000}
"""How many it takes until each function has something to tell."""
NAMES = [
    name
    for name in catalog.names()
    for plan in [catalog.load(name)]
    if len(plan.stages) == 1 and isinstance(plan.stages[0].window, Remembering)
]


def prepared(name: str) -> tuple[Plan, list[dict[str, Any]]]:
    """A pipeline without steps, and what these make of the records of its generator."""
    plan = catalog.load(name)
    (source,), (stage,) = plan.sources, plan.stages
    made = islice(GENERATORS[source.name](3).records(0, evenly(BEGAN, RATE)), RECORDS[source.name])
    records = [msgspec.to_builtins(record) for record in made]
    if "word" in stage.key:
        records = [
            {**each, "word": word} for each in records for word in re.findall(r"\w+", each["text"].lower())
        ]
        source = replace(source, columns=(*source.columns, Column("word", "STRING")))
    source = replace(source, deduplication=None)
    return replace(plan, sources=(source,), stages=(replace(stage, steps=()),)), records


def cut(topic: str, records: list[dict[str, Any]]) -> Iterator[Batch]:
    """The records by the steps of a clock in which they happened, and the end of the input."""
    steps: dict[int, list[Record]] = {}
    for offset, fields in enumerate(records):
        steps.setdefault((fields["at"] - BEGAN) // STEP, []).append(Record(topic, 0, offset, fields))
    newest = BEGAN
    for number, step in enumerate(sorted(steps)):
        newest = max(newest, *(record.fields["at"] for record in steps[step]))
        yield Batch(number, BEGAN + (step + 1) * STEP, tuple(steps[step]), watermark=newest - 2_000)
    yield Batch(len(steps), BEGAN + (max(steps) + 2) * STEP, (), ends=True)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_remembered_between_batches_is_what_the_reference_remembers(
    name: str, tmp_path: Path
) -> None:
    plan, records = prepared(name)
    (stage,), topic = plan.stages, plan.sources[0].name
    schema = pa.Table.from_pylist(records).schema
    ready = ready_stage(stage, dict(zip(schema.names, schema.types, strict=True)))
    evaluator, tree = Evaluator(plan), trees.empty(ready.state_columns)
    clock, watermark, told = BEFORE_ALL, BEFORE_ALL, 0
    for batch in cut(topic, records):
        after = NEVER if batch.ends else instant(batch.watermark or 0)
        moment = Moment(batch.id, clock, batch.clock, watermark, after)
        outcome = fold(ready, tree, elements(ready, batch.records, "at"), moment)
        tree = tree.with_run(outcome.changed, tmp_path / f"run-{batch.id}.arrow").compacted(tmp_path)
        found = sorted((tuple(pane.values()) for pane in outcome.panes.to_pylist()), key=repr)
        assert found == sorted((said(pane) for pane in evaluator.run(batch).panes), key=repr), batch.id
        clock, watermark, told = batch.clock, after, told + len(found)
    assert told
