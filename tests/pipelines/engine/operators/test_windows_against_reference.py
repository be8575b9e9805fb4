"""The operators equal the reference evaluator, for every window, trigger and mode."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.examples import scale_examples
from tests.pipelines.engine.operators.duckdb_partials import partials
from tests.pipelines.engine.operators.stage_strategies import histories, stages

from penstock.conformance.reference import Evaluator, InputBatch, Pane, ReplacedWindow
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.windows.sessions import Sessions

FIELDS = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", pa.int64()), ("word", pa.string())])
COLUMNS = tuple(
    Column(name, kind)
    for name, kind in zip(FIELDS.names, ["STRING", "BIGINT", "BIGINT", "STRING"], strict=True)
)
SOURCE = PlanSource("records", TopicOrigin("records"), COLUMNS, "at")


def reference(stage: Stage, batches: Sequence[InputBatch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    merges = isinstance(stage.window, Sessions) and stage.accumulation != "retracting"
    rows = []
    for outcome in (evaluator.run(batch) for batch in batches):
        panes = [(*pane_row(pane), *((None, None) if merges else ())) for pane in outcome.panes]
        refused = [
            row for row in outcome.late if row.reason != "no_window"
        ]  # Spark finds these before the operators run
        counted = Counter((*row.key, instant(row.start), instant(row.end)) for row in refused)
        others = [*(replaced(row) for row in outcome.replaced), *late(counted)]
        rows.append(sorted([*panes, *others], key=repr))
    return rows


def replaced(row: ReplacedWindow) -> tuple[Any, ...]:
    """What both sides emit for a window that another replaces."""
    return ("replaced", *row.key, row.start, row.end, row.by_start, row.by_end, row.batch)


def pane_row(pane: Pane) -> tuple[Any, ...]:
    watermark = instant(pane.watermark)
    return (
        *pane.key, *(value for _, value in pane.values), instant(pane.start), instant(pane.end), pane.pane_index,
        pane.timing,
        pane.on_time_index, pane.final, pane.kind, pane.records, pane.batch, pane.clock, watermark,
    )  # fmt: skip


def instant(time: float) -> int:
    return (
        MAX_TIMESTAMP_MS if time == float("inf") else MIN_TIMESTAMP_MS if time == float("-inf") else int(time)
    )


def engine(stage: Stage, batches: Sequence[InputBatch], folder: Any) -> list[list[tuple[Any, ...]]]:
    ready = compile_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.create_empty_tree(ready.state_schema)
    clock, watermark = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
    answers = []
    for batch in batches:
        after = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        moment = BatchTime(batch.id, clock, batch.clock, watermark, after)
        sent = partials(ready, batch.records, FIELDS, "at", batch.clock)
        moment = moment.for_processing_time() if ready.uses_processing_time else moment
        outcome = process_batch(ready, tree, sent, moment)
        tree = tree.with_run(outcome.changed_state, folder / f"run-{batch.id}.arrow").compact(folder)
        panes = [row_of(ready, pane) for pane in outcome.panes.to_pylist()]
        answers.append(sorted([*panes, *late(missed(ready, sent, outcome))], key=repr))
        clock, watermark = batch.clock, after
    return answers


def missed(stage: CompiledStage, sent: pa.Table, outcome: StageResult) -> Counter[tuple[Any, ...]]:
    """How many elements each window refused."""
    elements = sent.column("elements").filter(pa.array(outcome.is_late)).to_pylist()
    names = [*(field.name for field in stage.key), "missed_start", "missed_end"]
    count: Counter[tuple[Any, ...]] = Counter()
    for row, many in zip(outcome.late_rows.to_pylist(), elements, strict=True):
        count[tuple(row[name] for name in names)] += many
    return count


def late(counted: Counter[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [("late", *window, many) for window, many in counted.items()]


def row_of(stage: CompiledStage, pane: dict[str, Any]) -> tuple[Any, ...]:
    if pane["kind"] != "replaced":
        return tuple(pane.values())
    bounds = ("window_start", "window_end", "replaced_by_start", "replaced_by_end", "batch_id")
    return ("replaced", *(pane[field.name] for field in stage.key), *(pane[name] for name in bounds))


@settings(
    max_examples=scale_examples(60),
    phases=list(Phase),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(stage=stages, batches=histories())
def test_windows_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[InputBatch]
) -> None:
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
