"""Graphs of stages by watermarks of their own inputs: tables have what the reference says, row for row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.pipelines.batch.graphs import GraphBench
from tests.pipelines.batch.test_crashes import Fuse, run
from tests.pipelines.batch.test_random_crashes import without_ends
from tests.pipelines.fold.strategies import histories
from tests.pipelines.fold.test_chains_against_reference import sound
from tests.pipelines.fold.test_free_graphs import graphs

from penstock.pipelines.fold.outputs import columns_of
from penstock.pipelines.plan import Plan, WatermarkRule
from penstock.pipelines.reference import Batch, Evaluator, Pane

rules = st.builds(WatermarkRule, bound=st.integers(0, 15), idle_after=st.sampled_from([None, None, 4]))


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=graphs().filter(sound), batches=histories().map(without_ends), of_inputs=st.tuples(rules, rules))
def test_tables_of_every_stage_have_what_the_reference_says(
    tmp_path_factory: pytest.TempPathFactory,
    plan: Plan,
    batches: list[Batch],
    of_inputs: tuple[WatermarkRule, WatermarkRule],
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
        for name, panes in {plan.first.name: outcome.panes, **outcome.later}.items():
            expected[name] += panes
    for stage in bench.ready().stages:
        own = [field.name for field in (*stage.key, *stage.results) if field.name in columns_of(stage).names]
        told = [row for row in bench.rows(f"panes/{stage.plan.name}") if row["kind"] != "replaced"]
        found = sorted((tuple(row[name] for name in (*own, *ALIKE)) for row in told), key=repr)
        assert found == sorted(map(said, expected[stage.plan.name]), key=repr)


ALIKE = ("kind", "timing", "pane", "batch_id")


def said(pane: Pane) -> tuple[Any, ...]:
    """A pane of the reference as a row."""
    return (*pane.key, *(value for _, value in pane.values), pane.kind, pane.timing, pane.pane, pane.batch)
