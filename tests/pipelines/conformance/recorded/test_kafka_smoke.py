"""Kafka's smoke test: closed forms over shuffled integers, with early results and with final ones only."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.conformance.recorded.spark_evaluation import (
    describe_reference_panes,
    describe_spark_panes,
    evaluate_on_spark,
)
from tests.pipelines.recorded_answers import ORACLES, load_recorded_document

from penstock.conformance.reference import EvaluatedBatch, InputBatch, InputRecord, evaluate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.sum import Sum
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.window import Window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400_000
FILE = "kafka/kafka_smoke.json"
EXAMPLES = load_recorded_document(FILE)["examples"] if (ORACLES / FILE).exists() else []


def shuffle_records(keys: int, most: int) -> list[InputRecord]:
    """Return the integers i to i + most - 1 for each key i, in a random order within a day."""
    random_numbers = random.Random(17)
    values = [(f"{key}-{key + most - 1}", value) for key in range(keys) for value in range(key, key + most)]
    random_numbers.shuffle(values)
    return [
        InputRecord("data", 0, offset, {"key": key, "value": value, "ts": 7 * DAY + offset})
        for offset, (key, value) in enumerate(values)
    ]


def build_plan(window: Window, trigger: Trigger, lateness: int = 0) -> Plan:
    columns = (Column("key", "STRING"), Column("value", "BIGINT"), Column("ts", "BIGINT"))
    source = PlanSource("data", TopicOrigin("data"), columns, "ts", WatermarkStrategy(60_000))
    outputs = (
        AggregateOutput("min", Min("value")),
        AggregateOutput("max", Max("value")),
        AggregateOutput("sum", Sum("value")),
        AggregateOutput("cnt", Count()),
        AggregateOutput("avg", Mean("value")),
    )
    stage = Stage(
        "smoke", ("data",), window, outputs, (), ("key",), trigger, lateness, sinks=(PaneLog("smoke"),)
    )
    return Plan("smoke", (source,), (stage,))


def split_into_batches(records: list[InputRecord]) -> list[InputBatch]:
    pieces = [records[at : at + 500] for at in range(0, len(records), 500)]
    batches = [InputBatch(number, number, tuple(piece)) for number, piece in enumerate(pieces)]
    return [*batches, InputBatch(len(batches), len(batches), is_last=True)]


def expected_aggregates(example: dict[str, Any]) -> dict[str, dict[str, Any]]:
    names = ("min", "max", "sum", "cnt", "avg")
    return {row["key"]: {name: row[name] for name in names} for row in example["per_key"]}


def run(
    records: list[InputRecord], window: Window, trigger: Trigger, lateness: int = 0
) -> list[EvaluatedBatch]:
    return evaluate(build_plan(window, trigger, lateness), split_into_batches(records))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["records"]))
@pytest.mark.parametrize("trigger", [Default(), Repeatedly(AfterCount(1))], ids=["final", "early"])
def test_the_last_value_of_each_key_is_its_closed_form(example: dict[str, Any], trigger: Trigger) -> None:
    records = shuffle_records(example["numKeys"], example["maxRecordsPerKey"])
    panes = [pane for outcome in run(records, Fixed(DAY), trigger) for pane in outcome.panes]
    assert {pane.key[0]: dict(pane.values) for pane in panes} == expected_aggregates(example)
    if trigger == Default():
        assert len(panes) == example["numKeys"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["records"]))
def test_final_results_have_one_row_per_window(example: dict[str, Any]) -> None:
    records = shuffle_records(example["numKeys"], example["maxRecordsPerKey"])
    outcomes = run(records, Sliding(2_000, 1_000), Default(), lateness=30_000)
    panes = [pane for outcome in outcomes for pane in outcome.panes]
    windows = {(pane.key, pane.start) for pane in panes}
    assert len(panes) == len(windows)
    assert sum(pane.records for pane in panes) == 2 * len(records)


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES[-1:], ids=lambda example: str(example["records"]))
def test_spark_gives_the_closed_forms_and_the_panes_of_the_reference(
    spark: "SparkSession", tmp_path: Path, example: dict[str, Any]
) -> None:
    batches = split_into_batches(shuffle_records(example["numKeys"], example["maxRecordsPerKey"]))
    early_plan = build_plan(Fixed(DAY), Repeatedly(AfterCount(1)))
    panes = [
        pane for some in evaluate_on_spark(spark, early_plan, batches, tmp_path / "updated") for pane in some
    ]
    assert {pane.key[0]: dict(pane.values) for pane in panes} == expected_aggregates(example)
    final_plan = build_plan(Sliding(2_000, 1_000), Default(), lateness=30_000)
    assert describe_spark_panes(spark, final_plan, batches, tmp_path / "held") == describe_reference_panes(
        final_plan, batches
    )
