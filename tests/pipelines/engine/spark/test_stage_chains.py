"""Stages after stages from a real broker: what they leave is what DuckDB makes of the records that were sent."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, FOREVER, make_readings, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan import (
    AggregateOutput,
    ArrowStep,
    Plan,
    PlanSource,
    TopicOrigin,
    TopN,
    WatermarkStrategy,
    function_ref,
)
from penstock.engine.plan.stages import Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, max_, min_, repeatedly, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
EACH = repeatedly(after_count(1))


def in_fahrenheit(table: pa.Table) -> pa.Table:
    """A reading with its temperature once more, in the other scale."""
    return table.append_column("fahrenheit", pc.add(pc.multiply(table.column("temperature"), 2.0), 32.0))


def for_each_letter(table: pa.Table) -> pa.Table:
    """A device's total for every beginning of its name."""
    names = table.column("device").to_pylist()
    rows = [row for row, name in enumerate(names) for _ in range(len(name))]
    beginnings = [name[: length + 1] for name in names for length in range(len(name))]
    return table.take(pa.array(rows, pa.int64())).append_column(
        "beginning", pa.array(beginnings, pa.string())
    )


def build_plan(topic: str) -> Plan:
    """Totals of a device, the greatest of all that begin alike, and how many of these differ."""
    first = Stage(
        "totals", (topic,), fixed("10 seconds"),
        (AggregateOutput("n", count()), AggregateOutput("total", sum_("fahrenheit")),
         AggregateOutput("least", min_("fahrenheit"))),
        (ArrowStep(function_ref(in_fahrenheit)),), ("device",), EACH, FOREVER, "retracting",
    )  # fmt: skip
    second = Stage(
        "best", ("totals",), fixed("20 seconds"),
        (AggregateOutput("best", TopN("total", 2)), AggregateOutput("coldest", min_("least")),
         AggregateOutput("heard", sum_("n"))),
        (ArrowStep(function_ref(for_each_letter)),), ("beginning",), EACH, FOREVER, "retracting",
        sinks=(LatestValues("best"), PaneLog("best")),
    )  # fmt: skip
    third = Stage(
        topic + "_all", ("best",), fixed("1 minute"),
        (AggregateOutput("beginnings", count()), AggregateOutput("heard", max_("heard")),
         AggregateOutput("sum", sum_("heard"))),
        (), (), EACH, FOREVER, "retracting", sinks=(LatestValues("all"),),
    )  # fmt: skip
    source = PlanSource(
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=1000)
    )
    return Plan(f"chain_{topic}", (source,), (first, second, third))


BEST = """
WITH totals AS (
  SELECT device, "at" - "at" % 10000 AS w, count(1) AS n, sum(temperature * 2 + 32) AS total,
         min(temperature * 2 + 32) AS least FROM sent GROUP BY 1, 2),
best AS (
  SELECT device[:upto] AS beginning, w - w % 20000 AS wide, total, least, n
  FROM totals, unnest(range(1, len(device) + 1)) AS each(upto))
SELECT beginning, wide, coalesce(list(total ORDER BY total DESC) FILTER (total IS NOT NULL), [])[:2] AS best,
       min(least) AS coldest, sum(n)::BIGINT AS heard
FROM best GROUP BY ALL ORDER BY ALL
"""
ALL = f"SELECT wide - wide % 60000, count(1), max(heard), sum(heard)::BIGINT FROM ({BEST}) GROUP BY 1 ORDER BY 1"


def found(runner: StreamRunner, folder: str = "") -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    best = "SELECT beginning, epoch_ms(window_start), best, coldest, heard FROM found ORDER BY ALL"
    whole = "SELECT epoch_ms(window_start), beginnings, heard, sum FROM found ORDER BY ALL"
    return (
        query_duckdb(best, found=runner.table(f"{folder}latest/best")),
        query_duckdb(whole, found=runner.table(f"{folder}latest/all")),
    )


def test_three_stages_leave_what_the_records_say_live_and_bounded(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    topic = f"readings{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    runner = StreamRunner(build_plan(topic), spark, broker, tmp_path)
    sent = make_readings(900, seed=7)
    for part in range(3):
        some = sent[part * 300 : (part + 1) * 300]
        send(broker, topic, some, partition=part % 2)
        runner.run_until_read((part + 1) * 300)
    content = pa.Table.from_pylist(sent)
    expected = query_duckdb(BEST, sent=content), query_duckdb(ALL, sent=content)
    assert found(runner) == expected
    log = runner.table("panes/best").to_pylist()
    standing: dict[tuple[Any, ...], Any] = {}
    for row in sorted(log, key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        place = (row["beginning"], row["window_start"])
        if row["kind"] == "retract":
            assert standing.pop(place) == (row["best"], row["coldest"], row["heard"])
        else:
            standing[place] = (row["best"], row["coldest"], row["heard"])
    assert len(standing) == len(expected[0])
    place = BoundedRunConfig(tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250)
    run_bounded(
        runner.plan,
        spark,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        place,
        lambda: 1_000_000,
    )
    assert found(runner, "runs/") == expected
