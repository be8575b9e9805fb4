"""Session, processing-time and order windows over Kafka match DuckDB."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import AccumulationMode, Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, after_watermark, count, repeatedly, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

COLUMNS = (
    Column("device", "STRING", required=True),
    Column("at", "BIGINT", required=True),
    Column("steps", "BIGINT"),
)
EACH_BATCH = repeatedly(after_count(1))
SESSIONS = """
    WITH instants AS (
        SELECT device, "at", count(1) AS n, sum(steps) AS total FROM sent GROUP BY ALL
    ), marked AS (
        SELECT *, lag("at") OVER (PARTITION BY device ORDER BY "at") + 3000 < "at" AS begins FROM instants
    ), numbered AS (
        SELECT *, sum(CASE WHEN begins THEN 1 ELSE 0 END) OVER (PARTITION BY device ORDER BY "at") AS number
        FROM marked
    )
    SELECT device, min("at"), max("at") + 3000, sum(n), sum(total)
    FROM numbered GROUP BY device, number ORDER BY ALL
"""


def build_plan(
    topic: str,
    window: Window,
    accumulation: AccumulationMode,
    trigger: Trigger = EACH_BATCH,
    lateness: int = 10**13,
) -> Plan:
    name = f"by_{topic}"
    aggregates = (AggregateOutput("n", count()), AggregateOutput("total", sum_("steps")))
    sinks = (LatestValues(name), PaneLog(name))
    stage = Stage(
        name, (topic,), window, aggregates, (), ("device",), trigger, lateness, accumulation, sinks=sinks
    )
    return Plan(
        name,
        (PlanSource(topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=1000)),),
        (stage,),
    )


def make_walks(many: int, seed: int) -> list[dict[str, Any]]:
    """Return records out of order, with gaps that a later record may close."""
    rng = random.Random(seed)
    return [
        {
            "device": f"d{rng.randrange(12)}",
            "at": rng.randrange(120_000),
            "steps": rng.choice([None, rng.randrange(9)]),
        }
        for _ in range(many)
    ]


def query_duckdb(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    for name, content in tables.items():
        connection.register(name, content)
    return connection.sql(sql).fetchall()


def list_latest(runner: StreamRunner) -> list[tuple[Any, ...]]:
    columns = "device, epoch_ms(window_start), epoch_ms(window_end), n, total"
    return query_duckdb(f"SELECT {columns} FROM t ORDER BY ALL", t=runner.table(f"latest/{runner.plan.name}"))


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"walks{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


@pytest.mark.parametrize("accumulation", ["accumulating", "retracting"])
def test_sessions_merge_across_batches_and_restarts(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, accumulation: AccumulationMode
) -> None:
    runner = StreamRunner(build_plan(topic, Sessions(3000), accumulation), spark, broker, tmp_path)
    first, second = make_walks(150, seed=1), make_walks(150, seed=2)
    send(broker, topic, first)
    runner.run_until_read(150)
    send(broker, topic, second, partition=1)
    runner.run_until_read(300)
    assert list_latest(runner) == query_duckdb(SESSIONS, sent=pa.Table.from_pylist(first + second))


def test_inserts_and_retractions_of_sessions_add_up(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, Sessions(3000), "retracting"), spark, broker, tmp_path)
    sent = make_walks(200, seed=3)
    for begin in range(0, 200, 50):
        send(broker, topic, sent[begin : begin + 50])
        runner.run_until_read(begin + 50)
    window_columns = "device, epoch_ms(window_start), epoch_ms(window_end)"
    sign = "CASE kind WHEN 'insert' THEN 1 ELSE -1 END"
    summed = f"""SELECT {window_columns}, sum({sign} * n), sum({sign} * total) FROM panes
                 GROUP BY ALL HAVING sum({sign}) > 0 ORDER BY ALL"""
    found = query_duckdb(summed, panes=runner.table(f"panes/{runner.plan.name}"))
    assert found == query_duckdb(SESSIONS, sent=pa.Table.from_pylist(sent))


def test_a_late_record_names_its_closed_session(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = build_plan(topic, Sessions(3000), "accumulating", after_watermark(), lateness=2_000)
    runner = StreamRunner(plan, spark, broker, tmp_path)
    for partition in (0, 1):
        send(broker, topic, [{"device": "a", "at": 30_000, "steps": 1}], partition)
    runner.run_until_read(2)
    send(broker, topic, [{"device": "a", "at": at, "steps": 2} for at in (19_000, 20_500, 29_000)])
    runner.run_until_read(5)
    late = runner.table(f"late/{plan.name}")
    columns = '"offset", epoch_ms(window_start), epoch_ms(window_end), reason, missed_by_ms'
    assert query_duckdb(f"SELECT {columns} FROM late ORDER BY ALL", late=late) == [
        (1, 19_000, 23_500, "closed", 3_500),
        (2, 19_000, 23_500, "closed", 3_500),
    ]


def test_a_processing_time_window_takes_the_records_of_its_batches(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = build_plan(topic, Fixed(10_000, time="processing"), "accumulating", after_watermark(), lateness=0)
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_walks(90, seed=4)
    for number, clock in enumerate((1_000_000, 1_004_000, 1_011_000)):
        runner.clock = clock
        send(broker, topic, sent[number * 30 : number * 30 + 30])
        runner.run_until_read(number * 30 + 30)
    expected = (
        """SELECT device, 1000000, 1010000, count(1), sum(steps) FROM sent GROUP BY device ORDER BY ALL"""
    )
    assert list_latest(runner) == query_duckdb(expected, sent=pa.Table.from_pylist(sent[:60]))


POSITIONS = """
    SELECT *, row_number() OVER (PARTITION BY device ORDER BY nth) - 1 AS place FROM sent
"""


def list_order_windows(runner: StreamRunner) -> list[tuple[Any, ...]]:
    columns = "device, window_number, epoch_ms(window_start), epoch_ms(window_end), n, total"
    return query_duckdb(f"SELECT {columns} FROM t ORDER BY ALL", t=runner.table(f"latest/{runner.plan.name}"))


def number_records(records: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{**record, "nth": nth} for nth, record in enumerate(records)])


def test_each_record_is_in_one_tumbling_window_of_its_key(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = build_plan(topic, Tumbling(CountPolicy(4)), "accumulating", Default(), lateness=0)
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_walks(200, seed=5)
    send(broker, topic, sent[:90])
    runner.run_until_read(90)
    send(broker, topic, sent[90:])
    runner.run_until_read(200)
    expected = f"""
        SELECT device, CAST(floor(place / 4) AS BIGINT) AS number, min("at"), max("at") + 1, count(1), sum(steps)
        FROM ({POSITIONS}) GROUP BY device, number HAVING count(1) = 4 ORDER BY ALL"""
    assert list_order_windows(runner) == query_duckdb(expected, sent=number_records(sent))


def test_a_sliding_order_window_emits_the_last_records(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    window = SlidingOrder(CountPolicy(5), CountPolicy(2))
    plan = build_plan(topic, window, "accumulating", Default(), lateness=0)
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_walks(200, seed=6)
    send(broker, topic, [*sent[:111], b"broken"])
    runner.run_until_read(112)
    send(broker, topic, sent[111:])
    runner.run_until_read(201)
    frame = "PARTITION BY device ORDER BY place ROWS BETWEEN 4 PRECEDING AND CURRENT ROW"
    expected = f"""
        SELECT device, CAST(floor(place / 2) AS BIGINT), least, most + 1, held, total FROM (
            SELECT *, min("at") OVER ({frame}) AS least, max("at") OVER ({frame}) AS most,
                   count(1) OVER ({frame}) AS held, sum(steps) OVER ({frame}) AS total
            FROM ({POSITIONS})
        ) WHERE place % 2 = 1 ORDER BY ALL"""
    assert list_order_windows(runner) == query_duckdb(expected, sent=number_records(sent))
    assert runner.table(f"quarantine/{topic}").num_rows == 1
