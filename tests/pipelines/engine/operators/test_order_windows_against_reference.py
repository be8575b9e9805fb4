"""Order windows equal the reference evaluator, record by record, for every policy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.duckdb_partials import list_elements
from tests.pipelines.engine.operators.stage_strategies import aggregates, histories
from tests.pipelines.engine.operators.test_windows_against_reference import (
    FIELDS,
    SOURCE,
    clamp_time,
    make_pane_row,
)

from penstock.conformance.reference import Evaluator, InputBatch
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.batch_time import BatchTime
from penstock.engine.definition.predicates import Comparison
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.punctuation_policy import PunctuationPolicy
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.tumbling import Tumbling

counts = st.builds(CountPolicy, st.integers(1, 4))
deltas = st.builds(DeltaPolicy, st.just("value"), st.sampled_from([0.0, 1.0, 2.5]))
times = st.builds(TimePolicy, st.integers(1, 9))
windows = st.one_of(
    st.builds(
        Tumbling, st.one_of(counts, deltas, times, st.just(PunctuationPolicy(Comparison("value", ">", 3))))
    ),
    st.builds(SlidingOrder, st.one_of(counts, deltas, times), st.one_of(counts, deltas, times)),
)
stages = st.builds(
    lambda window, key: Stage(
        "stage",
        ("records",),
        window,
        (*aggregates, AggregateOutput("words", Collect("word", "arrival"))),
        key=key,
    ),
    windows,
    st.sampled_from([("key",), (), ("key", "word")]),
)


def run_reference(stage: Stage, batches: Sequence[InputBatch]) -> list[list[tuple[Any, ...]]]:
    evaluator = Evaluator(Plan("plan", (SOURCE,), (stage,)))
    outcomes = [evaluator.run(batch) for batch in batches]
    return [
        sorted(((*make_pane_row(pane), pane.window_number) for pane in outcome.panes), key=repr)
        for outcome in outcomes
    ]


def run_engine(stage: Stage, batches: Sequence[InputBatch], folder: Path) -> list[list[tuple[Any, ...]]]:
    compiled_stage = compile_stage(stage, {field.name: field.type for field in FIELDS})
    tree = trees.create_empty_tree(compiled_stage.state_schema)
    clock, watermark, newest = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
    rows_by_batch = []
    for batch in batches:
        next_watermark = MAX_TIMESTAMP_MS if batch.is_last else clamp_time(batch.watermark or 0)
        newest = max([newest, *(record.fields["at"] for record in batch.records)])
        batch_time = BatchTime(batch.id, clock, batch.clock, watermark, next_watermark, max_event_time=newest)
        outcome = process_batch(
            compiled_stage, tree, list_elements(compiled_stage, batch.records, "at"), batch_time
        )
        tree = tree.with_run(outcome.changed_state, folder / f"run-{batch.id}.arrow").compact(folder)
        panes = [tuple(pane.values()) for pane in outcome.panes.to_pylist()]
        rows_by_batch.append(sorted((tuple(map(to_hashable, pane)) for pane in panes), key=repr))
        clock, watermark = batch.clock, next_watermark
    return rows_by_batch


def to_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(stage=stages, batches=histories())
def test_order_windows_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory, stage: Stage, batches: list[InputBatch]
) -> None:
    assert run_engine(stage, batches, tmp_path_factory.mktemp("state")) == run_reference(stage, batches)
