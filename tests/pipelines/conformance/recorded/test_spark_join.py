"""Spark's watermark case with a join, by id and by a shifted time."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.conformance.recorded.spark_evaluation import (
    describe_reference_panes,
    describe_spark_panes,
    evaluate_on_spark,
)
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.conformance.reference import InputBatch, InputRecord, Pane, evaluate
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import InputSteps, RowFunctionStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.windows.global_window import Global
from penstock.stream.join_columns import join_member_outputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "stateful operator should pick the first occurrence of event time column (compatibility mode)"
APART = 10
"""Seconds by which the second input's time lies before that of its partner."""


def first(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"id": row["id1"], "meets": row["ts1_s"], "ts1_s": row["ts1_s"]}


def second(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"id": row["id2"], "meets": row["ts2_s"] + APART, "ts2_s": row["ts2_s"]}


def source(number: int, bound_s: int) -> PlanSource:
    name = f"input{number}"
    columns = (
        Column(f"id{number}", "STRING"),
        Column(f"ts{number}_s", "BIGINT"),
        Column(f"at{number}", "BIGINT"),
    )
    return PlanSource(name, TopicOrigin(name), columns, f"at{number}", WatermarkStrategy(bound_s * 1_000))


def step(function: Any, number: int) -> InputSteps:
    columns = (Column("id", "STRING"), Column("meets", "BIGINT"), Column(f"ts{number}_s", "BIGINT"))
    return InputSteps(f"input{number}", (RowFunctionStep(function_ref(function), columns),))


def plan(bounds: Mapping[str, int]) -> Plan:
    taken = (JoinColumn("ts1_s", "input1", "ts1_s"), JoinColumn("ts2_s", "input2", "ts2_s"))
    join = Join("inner", "input1", "input2", taken)
    stage = Stage(
        "joined",
        ("input1", "input2"),
        Global(),
        join_member_outputs(join),
        key=("id", "meets"),
        trigger=Repeatedly(AfterCount(1)),
        input_steps=(step(first, 1), step(second, 2)),
        join=join,
        sinks=(PaneLog("joined"),),
    )
    return validate_plan(Plan("joined", (source(1, bounds["input1"]), source(2, bounds["input2"])), (stage,)))


def batches(case: Any) -> list[InputBatch]:
    found = []
    for number, each in enumerate(case["steps"]):
        records = [
            InputRecord(
                name,
                0,
                offset,
                {f"id{name[-1]}": id_, f"ts{name[-1]}_s": time, f"at{name[-1]}": time * 1_000},
            )
            for name, rows_of in each["add_by_input"].items()
            for offset, (id_, time) in enumerate(rows_of)
        ]
        found.append(InputBatch(number, 0, tuple(records)))
    return found


def rows_of(panes: list[Pane]) -> list[list[Any]]:
    found = [dict(pane.values) for pane in panes]
    return [[pane.key[0], row["ts1_s"], row["ts2_s"]] for pane, row in zip(panes, found, strict=True)]


@pytest.fixture
def case() -> Any:
    (found,) = (
        each for each in load_recorded_document("spark/spark_watermark.json")["cases"] if each["name"] == NAME
    )
    assert len(found["steps"]) == 1
    return found


def test_the_join_gives_the_recorded_rows(case: Any) -> None:
    (outcome,) = evaluate(plan(case["query"]["watermark_delay_s"]), batches(case))
    assert rows_of(list(outcome.panes)) == case["steps"][0]["expect"]["rows"]


@pytest.mark.spark
def test_spark_gives_the_recorded_rows(spark: "SparkSession", tmp_path: Path, case: Any) -> None:
    ours, ran = plan(case["query"]["watermark_delay_s"]), batches(case)
    (panes,) = evaluate_on_spark(spark, ours, ran, tmp_path / "rows")
    assert rows_of(panes) == case["steps"][0]["expect"]["rows"]
    assert describe_spark_panes(spark, ours, ran, tmp_path / "panes") == describe_reference_panes(ours, ran)
