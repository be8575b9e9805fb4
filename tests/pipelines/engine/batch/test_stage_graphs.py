"""Tables of graphs of stages equal the reference, row for row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.batch.graph_bench import GraphBench
from tests.pipelines.engine.batch.test_crashes import run_batches
from tests.pipelines.engine.batch.test_random_crashes import drop_input_end
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_chains_against_reference import is_valid_plan
from tests.pipelines.engine.operators.test_random_graphs import graphs

from penstock.conformance.reference import Evaluator, InputBatch, Pane
from penstock.engine.operators.stateful.side_outputs import output_schema
from penstock.engine.plan.sources import WatermarkStrategy
from penstock.engine.plan.stages import Plan

watermark_strategies = st.builds(
    WatermarkStrategy, max_out_of_orderness=st.integers(0, 15), idle_after=st.sampled_from([None, None, 4])
)


@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=graphs().filter(is_valid_plan),
    batches=histories().map(drop_input_end),
    strategies=st.tuples(watermark_strategies, watermark_strategies),
)
def test_tables_of_every_stage_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory,
    plan: Plan,
    batches: list[InputBatch],
    strategies: tuple[WatermarkStrategy, WatermarkStrategy],
) -> None:
    sources_and_strategies = zip(plan.sources, strategies, strict=False)
    plan = replace(
        plan,
        sources=tuple(replace(source, watermark=strategy) for source, strategy in sources_and_strategies),
    )
    bench = GraphBench(plan, tmp_path_factory.mktemp("stream"))
    batches_by_source = [
        replace(batch, watermark=None, records=tuple(map(bench.assign_source, batch.records)))
        for batch in batches
    ]
    run_batches(bench, batches=batches_by_source)
    evaluator = Evaluator(plan)
    expected: dict[str, list[Pane]] = {stage.name: [] for stage in plan.stages}
    for outcome in map(evaluator.run, batches_by_source):
        for name, panes in {plan.first_source_stage.name: outcome.panes, **outcome.stage_panes}.items():
            expected[name] += panes
    for stage in bench.compile_plan().stages:
        names = [
            field.name
            for field in (*stage.key, *stage.result_fields)
            if field.name in output_schema(stage).names
        ]
        rows = [row for row in bench.rows(f"panes/{stage.plan.name}") if row["kind"] != "replaced"]
        found = sorted((tuple(row[name] for name in (*names, *COMPARED_COLUMNS)) for row in rows), key=repr)
        assert found == sorted(map(make_row, expected[stage.plan.name]), key=repr)


COMPARED_COLUMNS = ("kind", "timing", "pane", "batch_id")


def make_row(pane: Pane) -> tuple[Any, ...]:
    """Return a pane of the reference as a row."""
    return (
        *pane.key,
        *(value for _, value in pane.values),
        pane.kind,
        pane.timing,
        pane.pane_index,
        pane.batch,
    )
