"""Kafka's smoke test: closed forms over shuffled integers, updated with each batch, and held to the end."""

import random
from typing import Any

import pytest
from tests.pipelines.oracles import ORACLES, oracle_document

from penstock.pipelines.plan import (
    AfterCount,
    Column,
    Count,
    Default,
    Fixed,
    Max,
    Mean,
    Min,
    Output,
    PaneLog,
    Plan,
    Repeatedly,
    Sliding,
    Source,
    Stage,
    Sum,
    Topic,
    Trigger,
    WatermarkRule,
    Window,
)
from penstock.pipelines.reference import Batch, Outcome, Record, evaluate

DAY = 86_400_000
FILE = "kafka/kafka_smoke.json"
EXAMPLES = oracle_document(FILE)["examples"] if (ORACLES / FILE).exists() else []


def shuffled(keys: int, most: int) -> list[Record]:
    """Key i has the integers i to i + most - 1, each once, in a random order within a day."""
    chance = random.Random(17)
    values = [(f"{key}-{key + most - 1}", value) for key in range(keys) for value in range(key, key + most)]
    chance.shuffle(values)
    return [
        Record("data", 0, offset, {"key": key, "value": value, "ts": 7 * DAY + offset})
        for offset, (key, value) in enumerate(values)
    ]


def run(records: list[Record], window: Window, trigger: Trigger, lateness: int = 0) -> list[Outcome]:
    columns = (Column("key", "string"), Column("value", "long"), Column("ts", "timestamp"))
    source = Source("data", Topic("data"), columns, "ts", WatermarkRule(60_000))
    outputs = (
        Output("min", Min("value")),
        Output("max", Max("value")),
        Output("sum", Sum("value")),
        Output("cnt", Count()),
        Output("avg", Mean("value")),
    )
    stage = Stage(
        "smoke", ("data",), window, outputs, (), ("key",), trigger, lateness, sinks=(PaneLog("smoke"),)
    )
    pieces = [records[at : at + 500] for at in range(0, len(records), 500)]
    batches = [Batch(number, number, tuple(piece)) for number, piece in enumerate(pieces)]
    return evaluate(
        Plan("smoke", (source,), (stage,)), [*batches, Batch(len(batches), len(batches), ends=True)]
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["records"]))
@pytest.mark.parametrize("trigger", [Default(), Repeatedly(AfterCount(1))], ids=["held", "updated"])
def test_the_last_value_of_each_key_is_its_closed_form(example: dict[str, Any], trigger: Trigger) -> None:
    records = shuffled(example["numKeys"], example["maxRecordsPerKey"])
    panes = [pane for outcome in run(records, Fixed(DAY), trigger) for pane in outcome.panes]
    last = {pane.key[0]: dict(pane.values) for pane in panes}
    expected = {
        row["key"]: {name: row[name] for name in ("min", "max", "sum", "cnt", "avg")}
        for row in example["per_key"]
    }
    assert last == expected
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
