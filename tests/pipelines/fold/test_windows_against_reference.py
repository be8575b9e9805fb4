"""The fold over columns says what the reference evaluator says, for every window, trigger and mode."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.pipelines.fold.partials import partials
from tests.pipelines.fold.strategies import histories, stages

from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ready_stage
from penstock.pipelines.fold.windows import fold
from penstock.pipelines.plan import Column, Plan, Source, Stage, Topic
from penstock.pipelines.reference import Batch, Evaluator, Pane
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

FIELDS = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", pa.int64()), ("word", pa.string())])
COLUMNS = tuple(
    Column(name, kind)
    for name, kind in zip(FIELDS.names, ["STRING", "BIGINT", "BIGINT", "STRING"], strict=True)
)
SOURCE = Source("records", Topic("records"), COLUMNS, "at")


def reference(stage: Stage, batches: Sequence[Batch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    return [sorted((said(pane) for pane in evaluator.run(batch).panes), key=repr) for batch in batches]


def said(pane: Pane) -> tuple[Any, ...]:
    watermark = instant(pane.watermark)
    return (
        *pane.key, *(value for _, value in pane.values), instant(pane.start), instant(pane.end), pane.pane,
        pane.timing,
        pane.on_time_index, pane.final, pane.kind, pane.records, pane.batch, pane.clock, watermark,
    )  # fmt: skip


def instant(time: float) -> int:
    return NEVER if time == float("inf") else BEFORE_ALL if time == float("-inf") else int(time)


def engine(stage: Stage, batches: Sequence[Batch], folder: Any) -> list[list[tuple[Any, ...]]]:
    ready = ready_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.empty(ready.state_columns)
    clock, watermark = BEFORE_ALL, BEFORE_ALL
    answers = []
    for batch in batches:
        after = NEVER if batch.ends else int(batch.watermark or 0)
        moment = Moment(batch.id, clock, batch.clock, watermark, after)
        outcome = fold(ready, tree, partials(ready, batch.records, FIELDS, "at"), moment)
        tree = tree.with_run(outcome.changed, folder / f"run-{batch.id}.arrow").compacted(folder)
        rows = zip(*(column.to_pylist() for column in outcome.panes.columns), strict=True)
        answers.append(sorted(rows, key=repr))
        clock, watermark = batch.clock, after
    return answers


@settings(
    max_examples=100,
    phases=list(Phase),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(stage=stages, batches=histories())
def test_the_fold_and_the_reference_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[Batch]
) -> None:
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
