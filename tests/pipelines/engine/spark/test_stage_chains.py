"""A chain of three stages over Kafka matches DuckDB, live and bounded."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, FOREVER, make_readings, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ArrowStep
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, max_, min_, repeatedly, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
EACH = repeatedly(after_count(1))


def add_fahrenheit(table: pa.Table) -> pa.Table:
    """Add the temperature in another scale."""
    return table.append_column("fahrenheit", pc.add(pc.multiply(table.column("temperature"), 2.0), 32.0))


def expand_prefixes(table: pa.Table) -> pa.Table:
    """Return a row for every prefix of a device name."""
    names = table.column("device").to_pylist()
    rows = [row for row, name in enumerate(names) for _ in range(len(name))]
    prefixes = [name[: length + 1] for name in names for length in range(len(name))]
    return table.take(pa.array(rows, pa.int64())).append_column("beginning", pa.array(prefixes, pa.string()))


def build_plan(topic: str) -> Plan:
    """Build totals per device, the best totals per prefix, and the number of prefixes."""
    first = Stage(
        "totals", (topic,), fixed("10 seconds"),
        (AggregateOutput("n", count()), AggregateOutput("total", sum_("fahrenheit")),
         AggregateOutput("least", min_("fahrenheit"))),
        (ArrowStep(function_ref(add_fahrenheit)),), ("device",), EACH, FOREVER, "retracting",
    )  # fmt: skip
    second = Stage(
        "best", ("totals",), fixed("20 seconds"),
        (AggregateOutput("best", TopN("total", 2)), AggregateOutput("coldest", min_("least")),
         AggregateOutput("heard", sum_("n"))),
        (ArrowStep(function_ref(expand_prefixes)),), ("beginning",), EACH, FOREVER, "retracting",
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


def read_results(
    runner: StreamRunner, folder: str = ""
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    best_query = "SELECT beginning, epoch_ms(window_start), best, coldest, heard FROM found ORDER BY ALL"
    all_query = "SELECT epoch_ms(window_start), beginnings, heard, sum FROM found ORDER BY ALL"
    return (
        query_duckdb(best_query, found=runner.table(f"{folder}latest/best")),
        query_duckdb(all_query, found=runner.table(f"{folder}latest/all")),
    )


def test_a_chain_of_three_stages_matches_duckdb(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    topic = f"readings{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    runner = StreamRunner(build_plan(topic), spark, broker, tmp_path)
    sent = make_readings(900, seed=7)
    for part in range(3):
        batch = sent[part * 300 : (part + 1) * 300]
        send(broker, topic, batch, partition=part % 2)
        runner.run_until_read((part + 1) * 300)
    content = pa.Table.from_pylist(sent)
    expected = query_duckdb(BEST, sent=content), query_duckdb(ALL, sent=content)
    assert read_results(runner) == expected
    log = runner.table("panes/best").to_pylist()
    current: dict[tuple[Any, ...], Any] = {}
    for row in sorted(log, key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        window = (row["beginning"], row["window_start"])
        if row["kind"] == "retract":
            assert current.pop(window) == (row["best"], row["coldest"], row["heard"])
        else:
            current[window] = (row["best"], row["coldest"], row["heard"])
    assert len(current) == len(expected[0])
    window = BoundedRunConfig(tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250)
    run_bounded(
        runner.plan,
        spark,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        window,
        lambda: 1_000_000,
    )
    assert read_results(runner, "runs/") == expected
