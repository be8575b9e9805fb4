"""The operators equal the reference evaluator, for every window, trigger and mode."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.examples import scale_examples
from tests.pipelines.engine.operators.duckdb_partials import compute_partials
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


def run_reference(stage: Stage, batches: Sequence[InputBatch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    has_replaced_columns = isinstance(stage.window, Sessions) and stage.accumulation != "retracting"
    rows = []
    for outcome in (evaluator.run(batch) for batch in batches):
        panes = [
            (*make_pane_row(pane), *((None, None) if has_replaced_columns else ())) for pane in outcome.panes
        ]
        late_rows = [
            row for row in outcome.late if row.reason != "no_window"
        ]  # Spark finds these before the operators run
        late_counts = Counter((*row.key, clamp_time(row.start), clamp_time(row.end)) for row in late_rows)
        other_rows = [*(make_replaced_row(row) for row in outcome.replaced), *make_late_rows(late_counts)]
        rows.append(sorted([*panes, *other_rows], key=repr))
    return rows


def make_replaced_row(row: ReplacedWindow) -> tuple[Any, ...]:
    """The row of the engine and the reference for a window that another one replaces."""
    return ("replaced", *row.key, row.start, row.end, row.by_start, row.by_end, row.batch)


def make_pane_row(pane: Pane) -> tuple[Any, ...]:
    watermark = clamp_time(pane.watermark)
    return (
        *pane.key, *(value for _, value in pane.values), clamp_time(pane.start), clamp_time(pane.end),
        pane.pane_index, pane.timing,
        pane.on_time_index, pane.final, pane.kind, pane.records, pane.batch, pane.clock, watermark,
    )  # fmt: skip


def clamp_time(time: float) -> int:
    return (
        MAX_TIMESTAMP_MS if time == float("inf") else MIN_TIMESTAMP_MS if time == float("-inf") else int(time)
    )


def run_engine(stage: Stage, batches: Sequence[InputBatch], folder: Any) -> list[list[tuple[Any, ...]]]:
    compiled_stage = compile_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.create_empty_tree(compiled_stage.state_schema)
    clock, watermark = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
    rows_by_batch = []
    for batch in batches:
        next_watermark = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        batch_time = BatchTime(batch.id, clock, batch.clock, watermark, next_watermark)
        partials = compute_partials(compiled_stage, batch.records, FIELDS, "at", batch.clock)
        batch_time = batch_time.for_processing_time() if compiled_stage.uses_processing_time else batch_time
        outcome = process_batch(compiled_stage, tree, partials, batch_time)
        tree = tree.with_run(outcome.changed_state, folder / f"run-{batch.id}.arrow").compact(folder)
        panes = [make_row(compiled_stage, pane) for pane in outcome.panes.to_pylist()]
        rows_by_batch.append(
            sorted(
                [*panes, *make_late_rows(count_late_elements(compiled_stage, partials, outcome))], key=repr
            )
        )
        clock, watermark = batch.clock, next_watermark
    return rows_by_batch


def count_late_elements(
    stage: CompiledStage, partials: pa.Table, outcome: StageResult
) -> Counter[tuple[Any, ...]]:
    """How many elements each window refused."""
    elements = partials.column("elements").filter(pa.array(outcome.is_late)).to_pylist()
    columns = [*(field.name for field in stage.key), "missed_start", "missed_end"]
    counts: Counter[tuple[Any, ...]] = Counter()
    for row, element_count in zip(outcome.late_rows.to_pylist(), elements, strict=True):
        counts[tuple(row[name] for name in columns)] += element_count
    return counts


def make_late_rows(counts: Counter[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [("late", *window, count) for window, count in counts.items()]


def make_row(stage: CompiledStage, pane: dict[str, Any]) -> tuple[Any, ...]:
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
    assert run_engine(stage, batches, tmp_path_factory.mktemp("state")) == run_reference(stage, batches)
