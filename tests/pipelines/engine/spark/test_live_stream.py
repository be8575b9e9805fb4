"""A live stream from Kafka to Delta: every table matches DuckDB."""

import random
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from tests.patience import PATIENCE_S
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send

from penstock.core.waiting import wait_until
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import OtherTopicError
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ApplyStep, SqlStep
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, max_, mean, repeatedly, sliding, sum_

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
FOREVER = 10**14
TEN_SECONDS = '["at" - "at" % 10000]'
"""The start of the ten-second window of a record, in SQL."""

COLUMNS = (
    Column("device", "STRING", required=True),
    Column("at", "BIGINT", required=True),
    Column("temperature", "DOUBLE"),
)


def build_plan(topic: str, window: Window, steps: tuple[Any, ...] = (), lateness: int = FOREVER) -> Plan:
    name = f"by_{topic}"
    aggregates = {"n": count(), "measured": count("temperature"), "total": sum_("temperature")}
    stage = Stage(
        name,
        (topic,),
        window,
        (
            *(AggregateOutput(column, of) for column, of in aggregates.items()),
            AggregateOutput("most", max_("temperature")),
            AggregateOutput("average", mean("temperature")),
        ),
        steps=steps,
        key=("device",),
        trigger=repeatedly(after_count(1)),
        lateness=lateness,
        accumulation="retracting",
        sinks=(LatestValues(name), PaneLog(name)),
    )  # fmt: skip
    return Plan(
        name,
        (PlanSource(topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=1000)),),
        (stage,),
    )


def make_readings(count: int, seed: int) -> list[dict[str, Any]]:
    """Return readings whose temperatures are halves, so that sums are exact in any order."""
    rng = random.Random(seed)
    return [
        {
            "device": f"d{rng.randrange(20)}",
            "at": rng.randrange(60_000),
            "temperature": rng.choice([None, rng.randrange(80) / 2]),
        }
        for _ in range(count)
    ]


def query_duckdb(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Query tables in DuckDB."""
    connection = duckdb.connect()
    for name, content in tables.items():
        connection.register(name, content)
    return connection.sql(sql).fetchall()


def sum_accounts(runner: StreamRunner, *accounts: str) -> list[tuple[Any, ...]]:
    """Sum columns of the stream ledger."""
    content = runner.table(f"ledger/{runner.plan.name}")
    return query_duckdb(
        f"SELECT {', '.join(f'sum({name})' for name in accounts)} FROM ledger", ledger=content
    )


def list_windows(table: pa.Table) -> list[tuple[Any, ...]]:
    """List windows with their values, times as milliseconds."""
    columns = "device, epoch_ms(window_start), epoch_ms(window_end), n, measured, total, most, average"
    return query_duckdb(f"SELECT {columns} FROM found ORDER BY ALL", found=table)


def expect_windows(records: list[dict[str, Any]], windows: str, size: int) -> list[tuple[Any, ...]]:
    """Compute the windows of records in DuckDB; `windows` is SQL for the window starts of a record."""
    measures = "count(1), count(temperature), sum(temperature), max(temperature), avg(temperature)"
    windowed = f"SELECT *, {size} AS size, unnest({windows}) AS w FROM sent"
    query = f"SELECT device, w, w + size, {measures} FROM ({windowed}) GROUP BY device, w, size ORDER BY ALL"
    return query_duckdb(query, sent=pa.Table.from_pylist(records))


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"readings{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def test_windows_count_every_record_once_across_restarts(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    first, second = make_readings(400, seed=1), make_readings(300, seed=2)
    send(broker, topic, first)
    runner.run_until_read(400)
    send(broker, topic, second, partition=1)
    runner.run_until_read(700)
    latest = runner.table(f"latest/{runner.plan.name}")
    assert list_windows(latest) == expect_windows(first + second, '["at" - "at" % 10000]', 10_000)
    assert query_duckdb(
        "SELECT sum(CASE kind WHEN 'insert' THEN n ELSE -n END) FROM log",
        log=runner.table(f"panes/{runner.plan.name}"),
    ) == [(700,)]


def test_draining_during_live_traffic_loses_no_record(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    sent: list[dict[str, Any]] = []
    stop = Event()

    def produce_until_stopped() -> None:
        while not stop.is_set():
            batch = make_readings(15, seed=len(sent))
            send(broker, topic, batch)
            sent.extend(batch)

    thread = Thread(target=produce_until_stopped)
    thread.start()
    try:
        for _ in range(4):
            runner.run_until_read(runner.progress.records_read + 1)
    finally:
        stop.set()
        thread.join()
    runner.run_until_read(len(sent))
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        sent, TEN_SECONDS, 10_000
    )


def test_a_record_is_in_each_of_its_sliding_windows(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, sliding("9 seconds", "3 seconds")), spark, broker, tmp_path)
    sent = make_readings(300, seed=3)
    send(broker, topic, sent)
    runner.run_until_read(300)
    newest = '"at" - "at" % 3000'
    windows = f"[{newest} - 6000, {newest} - 3000, {newest}]"
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(sent, windows, 9_000)
    assert sum_accounts(runner, "read", "accepted") == [(300, 300)]


def test_an_invalid_record_is_quarantined_unchanged_with_its_address(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    valid = {"device": "a", "at": 5, "temperature": 1.5}
    invalid: list[tuple[bytes | None, str]] = [
        (b'{"device": "a", "at": 5', "malformed"),
        (b'{"device": "a", "at": "noon"}', "wrong_type:at"),
        (b"\xff\xfe\x00", "malformed"),
        (b"[]", "malformed"),
        (None, "no_value"),
        (b'{"device": null, "at": 5}', "missing_field:device"),
        (b'{"device": "a"}', "missing_field:at"),
        (b'{"device": "a", "at": 999999999999999}', "event_time_out_of_range"),
    ]
    send(broker, topic, [valid, *(value for value, _ in invalid), valid])
    runner.run_until_read(len(invalid) + 2)
    kept = (
        runner.table(f"quarantine/{topic}")
        .sort_by("offset")
        .select(["partition", "offset", "value", "reason"])
    )
    assert [tuple(row.values()) for row in kept.to_pylist()] == [
        (0, offset, value, reason) for offset, (value, reason) in enumerate(invalid, start=1)
    ]
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == [("a", 0, 10_000, 2, 2, 3.0, 1.5, 1.5)]


def test_a_late_record_is_only_in_the_late_table(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds"), lateness=2_000), spark, broker, tmp_path)
    for partition in (0, 1):
        send(broker, topic, [{"device": "a", "at": 30_000, "temperature": 1.0}], partition)
    runner.run_until_read(2)
    send(broker, topic, [{"device": "a", "at": 16_999, "temperature": 2.0}])
    send(broker, topic, [{"device": "a", "at": 20_000, "temperature": 4.0}])
    runner.run_until_read(4)
    late = runner.table(f"late/{runner.plan.name}").to_pylist()
    assert [(row["offset"], row["reason"], row["missed_by_ms"], row["record"]) for row in late] == [
        (1, "closed", 7_000, '{"device":"a","at":16999,"temperature":2.0}')
    ]
    found = list_windows(runner.table(f"latest/{runner.plan.name}"))
    assert [(row[1], row[3], row[5]) for row in found] == [(20_000, 1, 4.0), (30_000, 2, 2.0)]
    assert sum_accounts(runner, "read", "accepted", "late") == [(4, 3, 1)]


def test_records_that_steps_remove_are_counted_as_filtered(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    steps = (
        ApplyStep(function_ref(drop_missing_temperatures)),
        ApplyStep(function_ref(uppercase_device)),
        SqlStep("SELECT * FROM input WHERE device <> 'D7'"),
        SqlStep("SELECT * EXCEPT (at), at + 100000 AS at FROM input"),  # windows use the original event time
    )
    runner = StreamRunner(build_plan(topic, fixed("10 seconds"), steps), spark, broker, tmp_path)
    sent = make_readings(300, seed=4)
    send(broker, topic, [*sent, b"broken"])
    runner.run_until_read(301)
    kept = [{**r, "device": r["device"].upper()} for r in sent if is_kept(r)]
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        kept, '["at" - "at" % 10000]', 10_000
    )
    accounts = sum_accounts(runner, "read", "accepted", "quarantined", "filtered")
    assert accounts == [(301, len(kept), 1, 300 - len(kept))]


def is_kept(record: dict[str, Any]) -> bool:
    return record["temperature"] is not None and record["device"] != "d7"


def drop_missing_temperatures(records: "DataFrame") -> "DataFrame":
    return records.where("temperature IS NOT NULL")


def uppercase_device(records: "DataFrame") -> "DataFrame":
    return records.selectExpr("* EXCEPT (device)", "upper(device) AS device")


def test_a_partition_is_not_idle_while_the_stream_is_stopped(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = build_plan(topic, fixed("10 seconds"), lateness=0)
    strategy = WatermarkStrategy(max_out_of_orderness=1000, idle_after=500, advance_when_idle=True)
    runner = StreamRunner(
        replace(plan, sources=(replace(plan.sources[0], watermark=strategy),)), spark, broker, tmp_path
    )
    runner.clock = 1_000
    for partition in (0, 1):
        send(broker, topic, [{"device": "a", "at": 1_000, "temperature": 1.0}], partition)
    runner.run_until_read(2)
    backlog = [{"device": "a", "at": number * 1_000, "temperature": 1.0} for number in range(2, 60)]
    send(broker, topic, backlog)
    runner.clock = 1_000_000
    runner.run_until_read(60)
    assert sum_accounts(runner, "read", "accepted", "late") == [(60, 60, 0)]


def test_a_stream_refuses_a_topic_that_was_created_again(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    topic = f"t{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    send(broker, topic, make_readings(10, 1))
    runner.run_until_read(10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    wait_until(lambda: topic not in admin.list_topics(timeout=PATIENCE_S).topics, PATIENCE_S, "the deletion")
    broker.create_topic(topic, 1)
    send(broker, topic, make_readings(20, 2))
    with pytest.raises(OtherTopicError, match=f"{topic} is another topic now .* it was created again"):
        runner.start()
    assert runner.progress.records_read == 10
