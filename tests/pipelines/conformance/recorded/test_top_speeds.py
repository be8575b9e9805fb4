"""Delta windows: every 50 metres, the top speed of a car in the last ten seconds."""

import csv
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.conformance.recorded.spark_evaluation import (
    describe_reference_panes,
    describe_spark_panes,
)
from tests.pipelines.recorded_answers import recorded_file

from penstock.conformance.reference import InputBatch, InputRecord, evaluate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.sliding_order import SlidingOrder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 10_000
CARS = (0, 1)
Row = dict[str, float]
TYPES = {"car": "BIGINT", "speed_kmh": "DOUBLE", "distance_m": "DOUBLE", "timestamp_ms": "BIGINT"}
SOURCE = PlanSource(
    "cars", TopicOrigin("cars"), tuple(Column(name, kind) for name, kind in TYPES.items()), "timestamp_ms"
)
STAGE = Stage(
    "speeds",
    ("cars",),
    SlidingOrder(DeltaPolicy("timestamp_ms", SECONDS - 1), DeltaPolicy("distance_m", 50)),
    (
        AggregateOutput("top", TopN("speed_kmh", 1)),
        AggregateOutput("times", Collect("timestamp_ms", "arrival")),
    ),
    key=("car",),
    sinks=(PaneLog("speeds"),),
)
PLAN = Plan("speeds", (SOURCE,), (STAGE,))


def rows(name: str) -> list[Row]:
    """Rows of a file; whole numbers are such."""
    with recorded_file(f"flink/{name}").open(encoding="utf-8") as file:
        return [
            {name: (int if TYPES[name] == "BIGINT" else float)(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


def drive(car: int, found: list[Row]) -> list[Row]:
    return [row for row in found if row["car"] == car]


def batches(cut: int) -> list[InputBatch]:
    records = [
        InputRecord("cars", 0, offset, row) for offset, row in enumerate(rows("topspeed_car_data.csv"))
    ]
    pieces = [records[at : at + cut] for at in range(0, len(records), cut)]
    return [InputBatch(number, number, tuple(piece)) for number, piece in enumerate(pieces)]


@pytest.fixture
def shown() -> dict[int, list[tuple[float, list[int]]]]:
    """The top speed of each pane of a car, and the times of the records in it."""
    found = defaultdict(list)
    for outcome in evaluate(PLAN, batches(1_000)):
        for pane in outcome.panes:
            values = dict(pane.values)
            found[pane.key[0]].append((values["top"][0], list(values["times"])))
    return dict(found)


def test_the_top_speed_excludes_the_record_that_fires(
    shown: dict[int, list[tuple[float, list[int]]]],
) -> None:
    """The ten seconds up to the record before the one that has gone too far, worked out by hand below."""
    data = rows("topspeed_car_data.csv")
    assert {car: [top for top, _ in panes] for car, panes in shown.items()} == {
        car: by_hand(drive(car, data)) for car in CARS
    }


def by_hand(driven: list[Row]) -> list[float]:
    speeds = []
    since = driven[0]["distance_m"]
    for before, now in pairwise(driven):
        if now["distance_m"] - since > 50:
            recent = [row for row in driven if 0 <= before["timestamp_ms"] - row["timestamp_ms"] < SECONDS]
            speeds.append(max(row["speed_kmh"] for row in recent))
            since = now["distance_m"]
    return speeds


@pytest.mark.parametrize("car", CARS)
def test_with_the_firing_record_each_pane_is_the_recorded_row(
    car: int, shown: dict[int, list[tuple[float, list[int]]]]
) -> None:
    """The source fires with the record that has gone too far, the contract before it comes in: that is all."""
    data, recorded = (drive(car, rows(f"topspeed_{name}.csv")) for name in ("car_data", "top_speeds"))
    by_time = {row["timestamp_ms"]: row for row in data}
    following = {before["timestamp_ms"]: now for before, now in pairwise(data)}
    tops = []
    for _, times in shown[car]:
        now = following[times[-1]]
        recent = [by_time[time] for time in times if now["timestamp_ms"] - time < SECONDS]
        tops.append(max([*recent, now], key=lambda row: row["speed_kmh"]))
    assert tops == recorded


@pytest.mark.spark
def test_spark_gives_the_panes_of_the_reference(spark: "SparkSession", tmp_path: Path) -> None:
    cut = batches(40)
    assert describe_spark_panes(spark, PLAN, cut, tmp_path) == describe_reference_panes(PLAN, cut)
