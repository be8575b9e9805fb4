"""Kafka's smoke test: closed forms over shuffled integers, updated with each batch, and held to the end."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.conformance.recorded.spark_evaluation import by_spark, said_by_reference, said_by_spark
from tests.pipelines.recorded_answers import ORACLES, load_recorded_document

from penstock.conformance.reference import EvaluatedBatch, InputBatch, InputRecord, evaluate
from penstock.engine.plan import (
    AfterCount,
    AggregateOutput,
    Column,
    Count,
    Default,
    Fixed,
    Max,
    Mean,
    Min,
    Plan,
    PlanSource,
    Repeatedly,
    Sliding,
    Stage,
    Sum,
    TopicOrigin,
    Trigger,
    WatermarkStrategy,
    Window,
)
from penstock.engine.sinks.pane_log import PaneLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400_000
FILE = "kafka/kafka_smoke.json"
EXAMPLES = load_recorded_document(FILE)["examples"] if (ORACLES / FILE).exists() else []


def shuffled(keys: int, most: int) -> list[InputRecord]:
    """Key i has the integers i to i + most - 1, each once, in a random order within a day."""
    chance = random.Random(17)
    values = [(f"{key}-{key + most - 1}", value) for key in range(keys) for value in range(key, key + most)]
    chance.shuffle(values)
    return [
        InputRecord("data", 0, offset, {"key": key, "value": value, "ts": 7 * DAY + offset})
        for offset, (key, value) in enumerate(values)
    ]


def plan_of(window: Window, trigger: Trigger, lateness: int = 0) -> Plan:
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


def batches_of(records: list[InputRecord]) -> list[InputBatch]:
    pieces = [records[at : at + 500] for at in range(0, len(records), 500)]
    batches = [InputBatch(number, number, tuple(piece)) for number, piece in enumerate(pieces)]
    return [*batches, InputBatch(len(batches), len(batches), is_last=True)]


def closed_forms(example: dict[str, Any]) -> dict[str, dict[str, Any]]:
    names = ("min", "max", "sum", "cnt", "avg")
    return {row["key"]: {name: row[name] for name in names} for row in example["per_key"]}


def run(
    records: list[InputRecord], window: Window, trigger: Trigger, lateness: int = 0
) -> list[EvaluatedBatch]:
    return evaluate(plan_of(window, trigger, lateness), batches_of(records))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["records"]))
@pytest.mark.parametrize("trigger", [Default(), Repeatedly(AfterCount(1))], ids=["held", "updated"])
def test_the_last_value_of_each_key_is_its_closed_form(example: dict[str, Any], trigger: Trigger) -> None:
    records = shuffled(example["numKeys"], example["maxRecordsPerKey"])
    panes = [pane for outcome in run(records, Fixed(DAY), trigger) for pane in outcome.panes]
    assert {pane.key[0]: dict(pane.values) for pane in panes} == closed_forms(example)
    if trigger == Default():
        assert len(panes) == example["numKeys"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["records"]))
def test_windows_that_are_held_show_exactly_one_row_each(example: dict[str, Any]) -> None:
    records = shuffled(example["numKeys"], example["maxRecordsPerKey"])
    outcomes = run(records, Sliding(2_000, 1_000), Default(), lateness=30_000)
    panes = [pane for outcome in outcomes for pane in outcome.panes]
    places = {(pane.key, pane.start) for pane in panes}
    assert len(panes) == len(places)
    assert sum(pane.records for pane in panes) == 2 * len(records)


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES[-1:], ids=lambda example: str(example["records"]))
def test_spark_ends_with_the_closed_forms_and_shows_what_the_reference_shows(
    spark: "SparkSession", tmp_path: Path, example: dict[str, Any]
) -> None:
    batches = batches_of(shuffled(example["numKeys"], example["maxRecordsPerKey"]))
    updated = plan_of(Fixed(DAY), Repeatedly(AfterCount(1)))
    panes = [pane for some in by_spark(spark, updated, batches, tmp_path / "updated") for pane in some]
    assert {pane.key[0]: dict(pane.values) for pane in panes} == closed_forms(example)
    held = plan_of(Sliding(2_000, 1_000), Default(), lateness=30_000)
    assert said_by_spark(spark, held, batches, tmp_path / "held") == said_by_reference(held, batches)
