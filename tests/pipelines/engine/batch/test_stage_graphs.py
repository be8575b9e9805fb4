"""Tables of graphs of stages equal the reference, row for row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.batch.graph_bench import GraphBench
from tests.pipelines.engine.batch.test_crashes import Fuse, run
from tests.pipelines.engine.batch.test_random_crashes import without_ends
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_chains_against_reference import sound
from tests.pipelines.engine.operators.test_random_graphs import graphs

from penstock.conformance.reference import Evaluator, InputBatch, Pane
from penstock.engine.operators.stateful.side_outputs import output_schema
from penstock.engine.plan.sources import WatermarkStrategy
from penstock.engine.plan.stages import Plan

rules = st.builds(
    WatermarkStrategy, max_out_of_orderness=st.integers(0, 15), idle_after=st.sampled_from([None, None, 4])
)


@settings(max_examples=scale_examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=graphs().filter(sound), batches=histories().map(without_ends), of_inputs=st.tuples(rules, rules))
def test_tables_of_every_stage_equal_the_reference(
    tmp_path_factory: pytest.TempPathFactory,
    plan: Plan,
    batches: list[InputBatch],
    of_inputs: tuple[WatermarkStrategy, WatermarkStrategy],
) -> None:
    ruled = zip(plan.sources, of_inputs, strict=False)
    plan = replace(plan, sources=tuple(replace(source, watermark=rule) for source, rule in ruled))
    bench = GraphBench(plan, tmp_path_factory.mktemp("stream"))
    read = [
        replace(each, watermark=None, records=tuple(map(bench.of_its_source, each.records)))
        for each in batches
    ]
    run(bench, Fuse(-1), read)
    evaluator = Evaluator(plan)
    expected: dict[str, list[Pane]] = {stage.name: [] for stage in plan.stages}
    for outcome in map(evaluator.run, read):
        for name, panes in {plan.first_source_stage.name: outcome.panes, **outcome.stage_panes}.items():
            expected[name] += panes
    for stage in bench.ready().stages:
        own = [
            field.name
            for field in (*stage.key, *stage.result_fields)
            if field.name in output_schema(stage).names
        ]
        told = [row for row in bench.rows(f"panes/{stage.plan.name}") if row["kind"] != "replaced"]
        found = sorted((tuple(row[name] for name in (*own, *ALIKE)) for row in told), key=repr)
        assert found == sorted(map(said, expected[stage.plan.name]), key=repr)


ALIKE = ("kind", "timing", "pane", "batch_id")


def said(pane: Pane) -> tuple[Any, ...]:
    """Return a pane of the reference as a row."""
    return (
        *pane.key,
        *(value for _, value in pane.values),
        pane.kind,
        pane.timing,
        pane.pane_index,
        pane.batch,
    )
