"""Plans whose results can be recomputed, and samples of them."""

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.pipelines.engine.batch.test_crashes import PLANS
from tests.quality.audit.test_split_sessions import build_windows

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.definition.predicates import Comparison
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sources import Column, Deduplication
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.steps import FilterStep, RowFunctionStep, SqlStep, Step
from penstock.engine.windows.calendar import Calendar
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.quality.audit.comparability import (
    Sample,
    can_multiply_records,
    comparison_for,
    explain_batch_dependence,
    explain_unsampleable,
    filter_final_windows,
)
from penstock.stream import after_count, after_watermark, every, fixed, quantiles, repeatedly
from penstock.stream.join_columns import join_member_outputs

FULL_SAMPLE = Sample()


PLAN = PLANS["fixed"]


def change_stage(**changes: object) -> Plan:
    return replace(PLAN, stages=(replace(PLAN.only_stage, **changes),))


def build_join_plan() -> Plan:
    remaining, right = PLAN.sources[0], replace(PLAN.sources[0], name="other")
    join = Join("inner", remaining.name, right.name, (JoinColumn("one", remaining.name, "value"),))
    stage = replace(
        PLAN.only_stage, inputs=(remaining.name, right.name), join=join, aggregates=join_member_outputs(join)
    )
    return replace(PLAN, sources=(remaining, right), stages=(stage,))


BATCH_DEPENDENT_PLANS = [
    (change_stage(window=Fixed(10, time="processing")), "depend on processing time"),
    (change_stage(window=Tumbling(TimePolicy(10))), "depend on processing time"),
    (change_stage(window=Global()), "never ends"),
    (PLANS["stateful function"], "runs once per batch"),
    (change_stage(accumulation="discarding"), "partial results"),
    (change_stage(trigger=repeatedly(after_count(3))), "may omit elements"),
    (change_stage(trigger=after_watermark(late=every(5))), "may omit elements"),
    (PLANS["two stages"], "several stages"),
    (build_join_plan(), "any number of rows"),
]


@pytest.mark.parametrize(
    ("plan", "reason"), BATCH_DEPENDENT_PLANS, ids=[reason for _, reason in BATCH_DEPENDENT_PLANS]
)
def test_plans_that_depend_on_batches_are_explained(plan: Plan, reason: str) -> None:
    assert reason in (explain_batch_dependence(plan) or "")


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        change_stage(window=Sessions(5)),
        change_stage(window=Sliding(10, 5)),
        change_stage(window=Calendar("day")),
        change_stage(trigger=repeatedly(after_count(3)), final_pane="when_changed"),
        change_stage(trigger=after_watermark(late=every(5)), lateness=0),
        PLANS["count windows"],
    ],
)
def test_plans_that_depend_only_on_records_are_recomputed(plan: Plan) -> None:
    assert explain_batch_dependence(plan) is None


@pytest.mark.parametrize(
    ("step", "may"),
    [
        (SqlStep("SELECT *, Explode(tags) AS tag FROM input"), True),
        (SqlStep("SELECT *, upper(word) AS word FROM input WHERE value > 1"), False),
        (RowFunctionStep(function_ref(dict), (Column("word", "STRING"),), many=True), True),
        (RowFunctionStep(function_ref(dict), (Column("word", "STRING"),)), False),
        (FilterStep(Comparison("value", ">", 1)), False),
    ],
)
def test_steps_that_can_multiply_records_are_known(step: Step, may: bool) -> None:
    assert can_multiply_records(replace(PLAN.only_stage, steps=(step,))) is may


def test_the_deduplication_horizon_must_outlast_the_windows() -> None:
    for horizon, reason in ((29, "expire before their windows close"), (30, None)):
        source = replace(PLAN.sources[0], deduplication=Deduplication(("key",), horizon))
        message = explain_batch_dependence(replace(PLAN, sources=(source,)))
        assert message == reason if reason is None else reason in (message or "")


def test_a_sample_needs_keys_and_time_windows() -> None:
    assert "no key" in (explain_unsampleable(change_stage(key=()), Sample(key_share=0.1)) or "")
    assert "order of records" in (explain_unsampleable(PLANS["count windows"], Sample(start=5)) or "")


def final_window_starts(plan: Plan, table: pa.Table, watermark: int | None, sample: Sample) -> list[int]:
    remaining = filter_final_windows(table, plan.only_stage, watermark, sample)
    return pa.compute.cast(remaining.column("window_start"), pa.int64()).to_pylist()


def test_only_final_windows_are_compared() -> None:
    table = build_windows((0, 10), (10, 20), (20, 30), (30, 40))
    assert final_window_starts(PLAN, table, None, FULL_SAMPLE) == []
    assert final_window_starts(PLAN, table, 49, FULL_SAMPLE) == [0, 10]
    assert final_window_starts(PLAN, table, 50, FULL_SAMPLE) == [0, 10, 20]
    assert final_window_starts(PLAN, table, 1_000, Sample(start=10, end=35)) == [10, 20]


def test_a_session_that_may_start_before_the_sample_is_excluded() -> None:
    table = build_windows((12, 20), (15, 25), (16, 30))
    assert final_window_starts(change_stage(window=Sessions(5)), table, 1_000, Sample(start=10)) == [16]


def test_randomized_sketches_are_not_compared() -> None:
    outputs = (*PLAN.only_stage.aggregates, AggregateOutput("middle", quantiles("value", 0.5)))
    assert "middle" not in comparison_for(replace(PLAN.only_stage, aggregates=outputs), "t").values
    assert fixed(10) == PLAN.only_stage.window
