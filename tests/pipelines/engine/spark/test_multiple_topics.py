"""One stage reads several topics, each with its own contract and watermark."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from tests.patience import PATIENCE_S
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.definition.predicates import Comparison
from penstock.engine.errors import DefinitionError
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sources import (
    Column,
    Deduplication,
    PlanSource,
    RowCheck,
    Tombstones,
    TopicOrigin,
    WatermarkStrategy,
)
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import InputSteps, SelectStep, SqlStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.windows.as_of import AsOf
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, repeatedly, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
CALLS = (
    Column("id", "STRING", required=True),
    Column("device", "STRING"),
    Column("called", "BIGINT", required=True),
    Column("seconds", "BIGINT"),
)


def build_plan(readings: str, calls: str, lateness: int = 0) -> Plan:
    """Count the readings and calls of each device."""
    name = f"heard_{readings}"
    aggregates = (
        AggregateOutput("n", count()),
        AggregateOutput("measured", count("temperature")),
        AggregateOutput("seconds", sum_("seconds")),
    )
    stage = Stage(
        name, (readings, calls), fixed("10 seconds"), aggregates, (), ("device",),
        repeatedly(after_count(1)), lateness, sinks=(LatestValues(name),),
    )  # fmt: skip
    call_watermark = WatermarkStrategy(max_out_of_orderness=5_000, max_future_skew=10**9)
    sources = (
        PlanSource(
            readings, TopicOrigin(readings), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=1_000)
        ),
        PlanSource(calls, TopicOrigin(calls), CALLS, "called", call_watermark, Deduplication(("id",), 10**9)),
    )
    return Plan(name, sources, (stage,))


@pytest.fixture
def topics(broker: LocalBroker) -> tuple[str, str]:
    suffix = uuid4().hex[:8]
    names = f"readings{suffix}", f"calls{suffix}"
    for name in names:
        broker.create_topic(name, 1)
    return names


def list_device_windows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = "device, epoch_ms(window_start), n, measured, seconds"
    return query_duckdb(f"SELECT {columns} FROM found ORDER BY ALL", found=table)


def make_reading(device: str, at: int) -> dict[str, Any]:
    return {"device": device, "at": at, "temperature": 1.0}


def make_call(number: int, device: str | None, at: int, seconds: int) -> dict[str, Any]:
    return {"id": f"c{number}", "device": device, "called": at, "seconds": seconds}


def test_each_topic_is_read_by_its_own_contract(
    spark: "SparkSession", broker: LocalBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    readings, calls = topics
    runner = StreamRunner(build_plan(readings, calls, lateness=10**13), spark, broker, tmp_path)
    send(broker, readings, [make_reading("a", 1_000), make_reading("b", 2_000), b"broken"])
    send(
        broker,
        calls,
        [make_call(1, "a", 3_000, 40), make_call(1, "a", 3_000, 40), make_call(2, None, 4_000, 9)],
    )
    runner.run_until_read(6)
    send(broker, readings, [make_reading("a", 11_000)])
    send(
        broker,
        calls,
        [make_call(1, "a", 3_000, 40), make_call(3, "b", 5_000, 5), {"device": "a", "called": 1}],
    )
    runner.run_until_read(10)
    expected = [
        ("a", 0, 2, 1, 40),
        ("a", 10_000, 1, 1, None),
        ("b", 0, 2, 1, 5),
        (None, 0, 1, 0, 9),
    ]
    assert list_device_windows(runner.table(f"latest/{runner.plan.name}")) == expected
    accounts = ", ".join(f"sum({name})" for name in ("read", "accepted", "quarantined", "duplicate"))
    sums = f"SELECT topic, {accounts} FROM ledger GROUP BY 1 ORDER BY 1"
    found = query_duckdb(sums, ledger=runner.table(f"ledger/{runner.plan.name}"))
    assert found == [(calls, 6, 3, 1, 2), (readings, 4, 3, 1, 0)]
    reasons = [runner.table(f"quarantine/{topic}").column("reason").to_pylist() for topic in topics]
    assert reasons == [["malformed"], ["missing_field:id"]]
    stored = UnionSource(tuple(TopicSource(spark, topic, BrokerAccess(broker.bootstrap)) for topic in topics))
    config = BoundedRunConfig(tmp_path / "bounded", tmp_path / "bounded", 4)
    run_bounded(runner.plan, spark, stored, config, lambda: 1_000_000)
    bounded = StreamRunner(runner.plan, spark, broker, tmp_path)
    assert list_device_windows(pa.table(bounded.table(f"../bounded/latest/{runner.plan.name}"))) == expected


def build_tombstone_plan(payments: str, limits: str) -> Plan:
    """Join payments with the current limit of a device; a tombstone ends a limit."""
    name = f"limited_{payments}"
    columns = (Column("device", "STRING", required=True), Column("since", "BIGINT", required=True),
               Column("most", "BIGINT", required=True), Column("deleted", "BOOLEAN"))  # fmt: skip
    join = Join(
        "left", payments, limits, (JoinColumn("at", payments, "at"), JoinColumn("most", limits, "most"))
    )
    members = tuple(
        AggregateOutput(name, JoinMembers(name, join.fields_from(name))) for name in (payments, limits)
    )
    window = AsOf(ends=Comparison("deleted", "=", value=True))
    stage = Stage(
        name, (payments, limits), window, members, key=("device",), join=join, sinks=(PaneLog(name),)
    )
    sources = (
        PlanSource(payments, TopicOrigin(payments), COLUMNS, "at"),
        PlanSource(limits, TopicOrigin(limits), columns, "since", tombstones=Tombstones("deleted", "device")),
    )
    return validate_plan(Plan(name, sources, (stage,)))


def test_a_tombstone_ends_the_version_of_a_key(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    payments, limits = (f"{name}{uuid4().hex[:8]}" for name in ("payments", "limits"))
    for name in (payments, limits):
        broker.create_topic(name, 1, {"retention.ms": "-1"})  # the timestamps are of 1970
    runner = StreamRunner(build_tombstone_plan(payments, limits), spark, broker, tmp_path)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    versions = [("a", 1_000, 7), ("b", 1_000, 5), ("a", 10_000, None), ("a", 20_000, 9), (None, 30_000, None)]
    for device, since, most in versions:
        value = None if most is None else json.dumps({"device": device, "since": since, "most": most})
        producer.produce(limits, value, key=device, timestamp=since, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    payment_records = [make_reading(device, at) for at in (5_000, 10_000, 15_000, 25_000) for device in "ab"]
    send(broker, payments, [*payment_records, make_reading("c", 100_000)])
    send(broker, limits, [{"device": "c", "since": 100_000, "most": 1}])
    runner.run_until_read(15)
    limits_by_device = {"a": [7, None, None, 9], "b": [5, 5, 5, 5]}
    expected = [
        (d, at, limits_by_device[d][n]) for d in "ab" for n, at in enumerate((5_000, 10_000, 15_000, 25_000))
    ]
    query = 'SELECT device, "at", most FROM found ORDER BY ALL'
    assert query_duckdb(query, found=runner.table(f"panes/{runner.plan.name}")) == expected
    assert runner.table(f"quarantine/{limits}").column("reason").to_pylist() == ["no_value"]
    stored = UnionSource(
        tuple(TopicSource(spark, topic, BrokerAccess(broker.bootstrap)) for topic in (payments, limits))
    )
    config = BoundedRunConfig(tmp_path / "bounded", tmp_path / "bounded", 4)
    run_bounded(runner.plan, spark, stored, config, lambda: 1_000_000)
    bounded = StreamRunner(runner.plan, spark, broker, tmp_path).table(f"../bounded/panes/{runner.plan.name}")
    assert query_duckdb(query, found=bounded) == [*expected, ("c", 100_000, 1)]


def test_the_slower_topic_holds_the_watermark_back(
    spark: "SparkSession", broker: LocalBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    readings, calls = topics
    runner = StreamRunner(build_plan(readings, calls), spark, broker, tmp_path)
    send(broker, readings, [make_reading("a", 100_000)])
    runner.run_until_read(1)
    send(broker, readings, [make_reading("a", 1_000)])
    runner.run_until_read(2)
    send(broker, calls, [make_call(1, "a", 60_000, 1)])
    runner.run_until_read(3)
    assert runner.progress.outcomes[-1].watermark.value == 55_000
    send(broker, calls, [make_call(2, "a", 44_000, 1), make_call(3, "a", 45_000, 1)])
    runner.run_until_read(5)
    late = runner.table(f"late/{runner.plan.name}").to_pylist()
    assert [(row["topic"], row["offset"], row["missed_by_ms"]) for row in late] == [
        (calls, 1, 5_000),
        (calls, 2, 5_000),
    ]


def build_stage(*sources: PlanSource) -> Stage:
    """Build a stage over these inputs."""
    names = tuple(source.name for source in sources)
    return Stage("reading", names, fixed("10 seconds"), (AggregateOutput("n", count()),))


AUCTIONS = (Column("id", "BIGINT", required=True), Column("at", "BIGINT"), Column("seller", "STRING"))
BIDS = (
    Column("id", "STRING", required=True),
    Column("at", "BIGINT"),
    Column("auction", "BIGINT"),
    Column("price", "DOUBLE"),
)
JOINED_QUERY = """
SELECT a.id, seller, b.id, price FROM (SELECT DISTINCT * FROM auctions) a
JOIN (SELECT DISTINCT * FROM bids) b ON a.id = b.auction AND a."at" // 10000 = b."at" // 10000
WHERE a.id <= 7 AND b.id NOT LIKE 'x%' ORDER BY ALL
"""
COUNTED_QUERY = """
SELECT "at" - "at" % 10000 AS w, count(1), count(seller) FROM (
  SELECT "at", seller FROM (SELECT DISTINCT * FROM auctions) WHERE id <= 7
  UNION ALL SELECT "at", NULL FROM (SELECT DISTINCT * FROM bids) WHERE id NOT LIKE 'x%'
) GROUP BY 1 ORDER BY ALL
"""


def test_fields_of_one_name_keep_the_type_of_their_contract(
    spark: "SparkSession", broker: LocalBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    auctions, bids = topics
    auction_records = [{"id": n, "at": 1_000 * n, "seller": f"s{n % 3}"} for n in range(1, 10)]
    bid_records = [
        {"id": f"{'x' if n % 5 == 0 else 'b'}{n}", "at": 700 * n, "auction": n % 9, "price": n / 2}
        for n in range(40)
    ]
    sold = Stage(
        "sold", topics, fixed("10 seconds"), (
            AggregateOutput("left", JoinMembers(auctions, ("seller",))),
            AggregateOutput("right", JoinMembers(bids, ("bid", "price"))),
        ),
        key=("auction",), trigger=repeatedly(after_count(1)), lateness=10**13,
        sinks=(PaneLog(f"sold_{auctions}"),), accumulation="retracting",
        input_steps=(
            InputSteps(auctions, (SelectStep((("auction", "id"), ("seller", "seller"))),)),
            InputSteps(bids, (SelectStep((("auction", "auction"), ("bid", "id"), ("price", "price"))),)),
        ),
        join=Join("inner", auctions, bids, (
            JoinColumn("seller", auctions, "seller"), JoinColumn("bid", bids, "bid"),
            JoinColumn("price", bids, "price"),
        )),
    )  # fmt: skip
    # No step uses the field whose types differ.
    counted = Stage(
        "counted", topics, fixed("10 seconds"),
        (AggregateOutput("n", count()), AggregateOutput("offered", OfInput(auctions, count("seller")))),
        trigger=repeatedly(after_count(1)), lateness=10**13, sinks=(LatestValues(f"counted_{auctions}"),),
    )  # fmt: skip
    sources = (
        PlanSource(
            auctions, TopicOrigin(auctions), AUCTIONS, "at", deduplication=Deduplication(("id",), 10**9),
            checks=(RowCheck("few", "id > 7", "quarantine"),),
        ),
        PlanSource(
            bids, TopicOrigin(bids), BIDS, "at", deduplication=Deduplication(("id",), 10**9),
            checks=(RowCheck("seen", "at < 0", "warn"), RowCheck("named", "id LIKE 'x%'", "quarantine")),
        ),
    )  # fmt: skip
    runner = StreamRunner(
        validate_plan(Plan(f"sales_{auctions}", sources, (sold, counted))), spark, broker, tmp_path
    )
    for half in range(2):
        # The second half repeats the first half.
        send(broker, auctions, auction_records[: 5 + 4 * half])
        send(broker, bids, bid_records[: 20 + 20 * half])
        runner.run_until_read(25 + 49 * half)
    records = {"auctions": pa.Table.from_pylist(auction_records), "bids": pa.Table.from_pylist(bid_records)}
    log = runner.table(f"panes/sold_{auctions}")
    current_rows = (
        "SELECT auction, seller, bid, price FROM log GROUP BY ALL HAVING sum(if(kind = 'insert', 1, -1)) > 0"
    )
    assert query_duckdb(f"{current_rows} ORDER BY ALL", log=log) == query_duckdb(JOINED_QUERY, **records)
    found = runner.table(f"latest/counted_{auctions}")
    counted_windows = query_duckdb(
        "SELECT epoch_ms(window_start), n, offered FROM found ORDER BY ALL", found=found
    )
    assert counted_windows == query_duckdb(COUNTED_QUERY, **records)
    reasons = {topic: runner.table(f"quarantine/{topic}").column("reason").to_pylist() for topic in topics}
    assert reasons == {auctions: ["check:few"] * 2, bids: ["check:named"] * 12}


def test_conflicting_inputs_are_refused(spark: "SparkSession") -> None:
    other = PlanSource("b", TopicOrigin("b"), (Column("at", "STRING"),), "at")
    source = PlanSource("a", TopicOrigin("a"), (Column("at", "BIGINT"),), "at")
    # Spark resolves the types after a step.
    steps_per_input = tuple(
        InputSteps(each.name, (SqlStep("SELECT * FROM input"),)) for each in (source, other)
    )
    stage = replace(build_stage(source, other), key=("at",), input_steps=steps_per_input)
    with pytest.raises(DefinitionError, match="it is string in b and bigint in a"):
        FieldTypeResolver(spark).resolve_stage((source, other), stage)
    bounded = PlanSource("a#2", TopicOrigin("a"), source.columns, "at")
    with pytest.raises(DefinitionError, match="the topic a is read twice"):
        FieldTypeResolver(spark).resolve_stage((source, bounded), build_stage(source, bounded))


def test_concurrent_schema_inference_keeps_streams_apart(spark: "SparkSession") -> None:
    sources = [
        PlanSource(topic, TopicOrigin(topic), (Column("at", "BIGINT"), Column(topic, "STRING")), "at")
        for topic in ("a", "b", "c", "d")
    ]

    def resolve_fields(source: PlanSource) -> set[str]:
        steps = (SqlStep(f"SELECT *, upper({source.name}) AS upper_{source.name} FROM input"),)
        stage = Stage(source.name, (source.name,), fixed(1_000), (AggregateOutput("n", count()),), steps)
        return {
            name
            for name in FieldTypeResolver(spark).resolve_stage((source,), stage)
            if not name.startswith("_")
        }

    with ThreadPoolExecutor(len(sources)) as pool:
        found = list(pool.map(resolve_fields, sources * 3))
    assert found == [{"at", source.name, f"upper_{source.name}"} for source in sources] * 3
