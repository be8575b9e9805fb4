"""From a real broker to Delta: every aggregate in one table, across a restart, and records that came twice."""

import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.engine.aggregates.typed_elements import Spread, SquareSum
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import query_duckdb, sum_accounts

from penstock.conformance.reference.aggregates import compute_aggregate
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.plan import (
    Aggregate,
    AggregateOutput,
    Column,
    Deduplication,
    Plan,
    PlanSource,
    TopicOrigin,
    WatermarkStrategy,
)
from penstock.engine.plan.stages import Stage
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
HOUR = 3_600_000
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
OF_EACH = {
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
    **{f"{name}_{field}": make(field) for name, make in OF_EACH.items() for field in FIELDS},
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
    "spread": combine(Spread(), "steps"),
    "squares": combine(SquareSum(), "steps"),
}


def plan_over(topic: str, aggregates: dict[str, Aggregate], again: Deduplication | None = None) -> Plan:
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
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=1000), again
    )
    return Plan(name, (source,), (stage,))


def sent(many: int, seed: int) -> list[dict[str, Any]]:
    """Doubles are halves, infinite or none at all, so that sums are exact."""
    chance = random.Random(seed)
    return [
        {
            "id": chance.choice([None, f"id{chance.randrange(many)}"]),
            "device": f"d{chance.randrange(5)}",
            "at": chance.randrange(60_000),
            "steps": chance.choice([None, chance.randrange(-50, 50)]),
            "heat": chance.choice([None, "NaN", "Infinity", chance.randrange(80) / 2]),
            "mood": chance.choice([None, "", "calm", "älter", "b"]),
            "awake": chance.choice([None, True, False]),
            "price": chance.choice([None, chance.randrange(10_000) / 4]),
        }
        for _ in range(many)
    ]


def elements(partition: int, records: Sequence[dict[str, Any]]) -> list[tuple[tuple[str, int], StageElement]]:
    """Records as the reference takes them, each with its device and window."""
    found = []
    for offset, record in enumerate(records):
        heat, price = record["heat"], record["price"]
        typed = {
            "heat": None if heat is None else float(heat),
            "price": None if price is None else Decimal(str(price)).quantize(Decimal("0.01")),
        }
        element = StageElement((), record["at"], ("topic", partition, offset), record | typed)
        found.append(((record["device"], record["at"] // SIZE * SIZE), element))
    return found


def expected(of: Aggregate, some: list[StageElement]) -> Any:
    return canonicalize(compute_aggregate(of, some))


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"results{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def test_every_aggregate_says_what_the_reference_says(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(plan_over(topic, AGGREGATES), spark, broker, tmp_path)
    one, other, later = sent(200, seed=1), sent(150, seed=2), sent(100, seed=3)
    send(broker, topic, one)
    send(broker, topic, other, partition=1)
    runner.run_until_read(350)
    send(broker, topic, later, partition=1)
    runner.run_until_read(450)
    placed = [*elements(0, one), *elements(1, [*other, *later])]
    rows = runner.table(f"latest/{runner.plan.name}").to_pylist()
    found = {(row["device"], round(row["window_start"].timestamp() * 1000)): row for row in rows}
    assert len(found) == len(rows)
    assert found.keys() == {place for place, _ in placed}
    for place, row in found.items():
        some = [element for where, element in placed if where == place]
        said = {column: canonicalize(row[column]) for column in AGGREGATES}
        assert said == {column: expected(of, some) for column, of in AGGREGATES.items()}, place


def test_what_was_shown_is_taken_back_as_it_was(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(plan_over(topic, AGGREGATES), spark, broker, tmp_path)
    first_part, second_part = sent(120, seed=4), sent(120, seed=5)
    send(broker, topic, first_part)
    runner.run_until_read(120)
    send(broker, topic, second_part)
    runner.run_until_read(240)
    log = runner.table(f"panes/{runner.plan.name}").to_pylist()
    shown = {}
    for row in sorted(log, key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        place = (row["device"], row["window_start"])
        said = [canonicalize(row[column]) for column in AGGREGATES]
        if row["kind"] == "retract":
            assert shown.pop(place) == said
        else:
            assert place not in shown
            shown[place] = said
    assert any(row["kind"] == "retract" for row in log)


def test_a_record_that_comes_again_is_counted_once(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    """By id and device, over both partitions and across a restart; without an id nothing is a repeat."""
    again = Deduplication(("id", "device"), HOUR)
    aggregates: dict[str, Aggregate] = {"n": count(), "total": sum_("steps")}
    runner = StreamRunner(plan_over(topic, aggregates, again), spark, broker, tmp_path)
    one, other = sent(150, seed=6), sent(150, seed=7)
    send(broker, topic, one)
    send(broker, topic, [b"broken", *one[:40]], partition=1)
    runner.run_until_read(191)
    send(broker, topic, [*other, *one])
    runner.run_until_read(491)
    kept = pa.Table.from_pylist(
        [
            {**{name: record[name] for name in ("id", "device", "at", "steps")}, "number": number}
            for number, record in enumerate(as_they_came(runner, one, other))
        ]
    )
    numbered = "SELECT *, row_number() OVER (PARTITION BY id, device ORDER BY number) AS nth FROM kept"
    answer = query_duckdb(
        f"""
        SELECT device, "at" - "at" % {SIZE} AS begins, count(1), sum(steps)
        FROM ({numbered}) WHERE id IS NULL OR nth = 1 GROUP BY ALL ORDER BY ALL
        """,
        kept=kept,
    )
    latest = runner.table(f"latest/{runner.plan.name}")
    found = "SELECT device, epoch_ms(window_start), n, total FROM latest ORDER BY ALL"
    assert query_duckdb(found, latest=latest) == answer
    counted = sum(row[2] for row in answer)
    assert sum_accounts(runner, "read", "folded", "quarantined", "duplicate") == [
        (491, counted, 1, 490 - counted)
    ]


def as_they_came(
    runner: StreamRunner, one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """All good records in the order of their batches, then of partition and offset."""
    contents = {0: [*one, *other, *one], 1: [None, *one[:40]]}
    rows = runner.table(f"ledger/{runner.plan.name}").to_pylist()
    found = []
    for row in sorted(rows, key=lambda row: (row["batch_id"], row["partition"])):
        for offset in range(row["start"], row["end"]):
            record = contents[row["partition"]][offset]
            if record is not None:
                found.append(record)
    return found
