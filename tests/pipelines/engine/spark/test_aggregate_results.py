"""Every aggregate over Kafka matches the reference, with retractions, restarts and duplicates."""

import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.engine.aggregates.typed_elements import SquareSum, ValueRange
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import query_duckdb, sum_accounts

from penstock.conformance.reference.aggregates import compute_aggregate
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.plan.sources import Column, Deduplication, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.infra.local_broker import LocalBroker
from penstock.stream import (
    after_count,
    collect,
    combine,
    count,
    distinct,
    first,
    fixed,
    last,
    max_,
    mean,
    min_,
    quantiles,
    repeatedly,
    sum_,
    top,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SIZE = 10_000
HOUR_MS = 3_600_000
COLUMNS = (
    Column("id", "STRING"),
    Column("device", "STRING", required=True),
    Column("at", "BIGINT", required=True),
    Column("steps", "BIGINT"),
    Column("heat", "DOUBLE"),
    Column("mood", "STRING"),
    Column("awake", "BOOLEAN"),
    Column("price", "DECIMAL(10,2)"),
)
FIELDS = ("steps", "heat", "mood", "awake", "price")
PER_FIELD = {
    "present": count,
    "least": min_,
    "most": max_,
    "begin": first,
    "end": last,
    "different": distinct,
    "all_of": collect,
}
AGGREGATES: dict[str, Aggregate] = {
    "n": count(),
    **{f"{name}_{field}": make(field) for name, make in PER_FIELD.items() for field in FIELDS},
    **{f"total_{field}": sum_(field) for field in ("steps", "heat", "price")},
    "average": mean("heat"),
    "arrived_first": first("mood", order="arrival"),
    "arrived_last": last("mood", order="arrival"),
    "as_arrived": collect("steps", order="arrival"),
    "moods_or_so": distinct("mood", exact=False),
    "warmest": top(3, "mood", by="heat"),
    "cheapest": top(2, "price", largest=False),
    "steps_at": quantiles("steps", 0, 0.25, 0.5, 1),
    "heat_at": quantiles("heat", 0.5, 0.99),
    "spread": combine(ValueRange(), "steps"),
    "squares": combine(SquareSum(), "steps"),
}


def build_plan(
    topic: str, aggregates: dict[str, Aggregate], deduplication: Deduplication | None = None
) -> Plan:
    name = f"by_{topic}"
    stage = Stage(
        name,
        (topic,),
        fixed(SIZE),
        tuple(AggregateOutput(column, of) for column, of in aggregates.items()),
        key=("device",),
        trigger=repeatedly(after_count(1)),
        lateness=10**14,
        accumulation="retracting",
        sinks=(LatestValues(name), PaneLog(name)),
    )
    source = PlanSource(
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=1000), deduplication
    )
    return Plan(name, (source,), (stage,))


def make_records(record_count: int, seed: int) -> list[dict[str, Any]]:
    """Doubles are halves, infinite or none at all, so that sums are exact."""
    rng = random.Random(seed)
    return [
        {
            "id": rng.choice([None, f"id{rng.randrange(record_count)}"]),
            "device": f"d{rng.randrange(5)}",
            "at": rng.randrange(60_000),
            "steps": rng.choice([None, rng.randrange(-50, 50)]),
            "heat": rng.choice([None, "NaN", "Infinity", rng.randrange(80) / 2]),
            "mood": rng.choice([None, "", "calm", "älter", "b"]),
            "awake": rng.choice([None, True, False]),
            "price": rng.choice([None, rng.randrange(10_000) / 4]),
        }
        for _ in range(record_count)
    ]


def to_elements(
    partition: int, records: Sequence[dict[str, Any]]
) -> list[tuple[tuple[str, int], StageElement]]:
    """Convert records to elements of the reference, each with its device and window."""
    rows_by_window = []
    for offset, record in enumerate(records):
        heat, price = record["heat"], record["price"]
        typed = {
            "heat": None if heat is None else float(heat),
            "price": None if price is None else Decimal(str(price)).quantize(Decimal("0.01")),
        }
        element = StageElement((), record["at"], ("topic", partition, offset), record | typed)
        rows_by_window.append(((record["device"], record["at"] // SIZE * SIZE), element))
    return rows_by_window


def compute_expected(of: Aggregate, window_elements: list[StageElement]) -> Any:
    return canonicalize(compute_aggregate(of, window_elements))


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"results{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def test_every_aggregate_matches_the_reference(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, AGGREGATES), spark, broker, tmp_path)
    first_records, second_records, third_records = (
        make_records(200, seed=1),
        make_records(150, seed=2),
        make_records(100, seed=3),
    )
    send(broker, topic, first_records)
    send(broker, topic, second_records, partition=1)
    runner.run_until_read(350)
    send(broker, topic, third_records, partition=1)
    runner.run_until_read(450)
    elements = [*to_elements(0, first_records), *to_elements(1, [*second_records, *third_records])]
    rows = runner.table(f"latest/{runner.plan.name}").to_pylist()
    rows_by_window = {(row["device"], round(row["window_start"].timestamp() * 1000)): row for row in rows}
    assert len(rows_by_window) == len(rows)
    assert rows_by_window.keys() == {window for window, _ in elements}
    for window, row in rows_by_window.items():
        window_elements = [element for element_window, element in elements if element_window == window]
        values = {column: canonicalize(row[column]) for column in AGGREGATES}
        assert values == {
            column: compute_expected(of, window_elements) for column, of in AGGREGATES.items()
        }, window


def test_retractions_repeat_the_inserted_values(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, AGGREGATES), spark, broker, tmp_path)
    first_part, second_part = make_records(120, seed=4), make_records(120, seed=5)
    send(broker, topic, first_part)
    runner.run_until_read(120)
    send(broker, topic, second_part)
    runner.run_until_read(240)
    log = runner.table(f"panes/{runner.plan.name}").to_pylist()
    current = {}
    for row in sorted(log, key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        window = (row["device"], row["window_start"])
        values = [canonicalize(row[column]) for column in AGGREGATES]
        if row["kind"] == "retract":
            assert current.pop(window) == values
        else:
            assert window not in current
            current[window] = values
    assert any(row["kind"] == "retract" for row in log)


def test_duplicates_are_counted_once(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    """Duplicates have the same id and device, in any partition; records without an id are never duplicates."""
    deduplication = Deduplication(("id", "device"), HOUR_MS)
    aggregates: dict[str, Aggregate] = {"n": count(), "total": sum_("steps")}
    runner = StreamRunner(build_plan(topic, aggregates, deduplication), spark, broker, tmp_path)
    first_records, second_records = make_records(150, seed=6), make_records(150, seed=7)
    send(broker, topic, first_records)
    send(broker, topic, [b"broken", *first_records[:40]], partition=1)
    runner.run_until_read(191)
    send(broker, topic, [*second_records, *first_records])
    runner.run_until_read(491)
    arrived = pa.Table.from_pylist(
        [
            {**{name: record[name] for name in ("id", "device", "at", "steps")}, "number": number}
            for number, record in enumerate(records_in_arrival_order(runner, first_records, second_records))
        ]
    )
    numbered = "SELECT *, row_number() OVER (PARTITION BY id, device ORDER BY number) AS nth FROM kept"
    answer = query_duckdb(
        f"""
        SELECT device, "at" - "at" % {SIZE} AS begins, count(1), sum(steps)
        FROM ({numbered}) WHERE id IS NULL OR nth = 1 GROUP BY ALL ORDER BY ALL
        """,
        kept=arrived,
    )
    latest = runner.table(f"latest/{runner.plan.name}")
    rows_by_window = "SELECT device, epoch_ms(window_start), n, total FROM latest ORDER BY ALL"
    assert query_duckdb(rows_by_window, latest=latest) == answer
    counted = sum(row[2] for row in answer)
    assert sum_accounts(runner, "read", "accepted", "quarantined", "duplicate") == [
        (491, counted, 1, 490 - counted)
    ]


def records_in_arrival_order(
    runner: StreamRunner, first_records: list[dict[str, Any]], second_records: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """List all valid records by batch, partition and offset."""
    contents = {0: [*first_records, *second_records, *first_records], 1: [None, *first_records[:40]]}
    rows = runner.table(f"ledger/{runner.plan.name}").to_pylist()
    rows_by_window = []
    for row in sorted(rows, key=lambda row: (row["batch_id"], row["partition"])):
        for offset in range(row["start"], row["end"]):
            record = contents[row["partition"]][offset]
            if record is not None:
                rows_by_window.append(record)
    return rows_by_window
