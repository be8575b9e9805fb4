"""Delta windows as a job has them: every 50 metres, a car's top speed of the last ten seconds."""

import csv
from collections import defaultdict
from itertools import pairwise

from tests.pipelines.oracles import oracle

from penstock.pipelines.plan import (
    Collect,
    Column,
    DeltaPolicy,
    Output,
    PaneLog,
    Plan,
    SlidingOrder,
    Source,
    Stage,
    Topic,
    TopN,
)
from penstock.pipelines.reference import Batch, Record, evaluate

SECONDS = 10_000


def rows(name: str) -> list[dict[str, float]]:
    with oracle(name).open(encoding="utf-8") as file:
        return [{column: float(value) for column, value in row.items()} for row in csv.DictReader(file)]


def test_each_car_shows_its_top_speed_before_it_has_gone_fifty_metres_more() -> None:
    """The source fires with the record that has gone too far, the contract before it comes in.

    So what is shown here is the top speed of the ten seconds up to the record before, worked out by hand below.
    """
    data = rows("flink/topspeed_car_data.csv")
    columns = tuple(Column(name, "double") for name in ("car", "speed_kmh", "distance_m", "timestamp_ms"))
    source = Source("cars", Topic("cars"), columns, "timestamp_ms")
    window = SlidingOrder(DeltaPolicy("timestamp_ms", SECONDS - 1), DeltaPolicy("distance_m", 50))
    outputs = (Output("top", TopN("speed_kmh", 1)), Output("times", Collect("timestamp_ms", "arrival")))
    stage = Stage("speeds", ("cars",), window, outputs, key=("car",), sinks=(PaneLog("speeds"),))
    records = tuple(
        Record("cars", 0, offset, {**row, "timestamp_ms": int(row["timestamp_ms"])})
        for offset, row in enumerate(data)
    )
    (outcome,) = evaluate(Plan("speeds", (source,), (stage,)), [Batch(0, 0, records)])
    shown = defaultdict(list)
    for pane in outcome.panes:
        shown[pane.key[0]].append(dict(pane.values)["top"][0])
    assert dict(shown) == {car: by_hand([row for row in data if row["car"] == car]) for car in (0.0, 1.0)}


def by_hand(drive: list[dict[str, float]]) -> list[float]:
    speeds = []
    since = drive[0]["distance_m"]
    for before, now in pairwise(drive):
        if now["distance_m"] - since > 50:
            recent = [row for row in drive if 0 <= before["timestamp_ms"] - row["timestamp_ms"] < SECONDS]
            speeds.append(max(row["speed_kmh"] for row in recent))
            since = now["distance_m"]
    return speeds


def test_the_source_shows_as_often_as_we_do_and_once_more_for_its_first_record() -> None:
    data, recorded = rows("flink/topspeed_car_data.csv"), rows("flink/topspeed_top_speeds.csv")
    for car in (0.0, 1.0):
        drive = [row for row in data if row["car"] == car]
        times = sum(row["car"] == car for row in recorded)
        assert len(by_hand(drive)) in (times, times - 1)
