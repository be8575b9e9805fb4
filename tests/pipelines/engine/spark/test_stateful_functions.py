"""Stateful functions over Kafka emit the rows of a plain loop over the records."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, make_readings, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.engine.functions.vectorized import (
    KEY_INDEX_COLUMN,
    RECORD_TIME_COLUMN,
    ROW_TIME_COLUMN,
    KeyBatchContext,
    KeyBatchUpdate,
)
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@dataclass(frozen=True)
class LastReading:
    """The last temperature and the number of readings."""

    temperature: float | None
    number: int


def find_rises(call: KeyContext[LastReading]) -> KeyUpdate[LastReading]:
    """Emit readings that are ten degrees above the last one, and the number of readings at the end."""
    last, rows = call.state or LastReading(None, 0), []
    for read in call.records:
        now = read.fields["temperature"]
        if now is not None and last.temperature is not None and now - last.temperature >= 10:
            rows.append(OutputRow({"rise": now - last.temperature, "number": last.number}, read.time))
        last = LastReading(now if now is not None else last.temperature, last.number + 1)
    rows += [OutputRow({"rise": None, "number": last.number}, timer.at) for timer in call.due_timers]
    return KeyUpdate(last, rows, None if call.due_timers else [Timer(10**15)])


@dataclass(frozen=True)
class ReadingCount:
    """The number of readings."""

    number: int = 0


def number_readings(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Number the readings of each device, vectorized over all devices."""
    key = calls.records.column(KEY_INDEX_COLUMN).to_numpy()
    before = calls.states.column("number").fill_null(0).to_numpy()
    config = np.arange(len(key)) - np.searchsorted(key, np.arange(len(before)))[key]
    rows = pa.table(
        {
            KEY_INDEX_COLUMN: key,
            ROW_TIME_COLUMN: calls.records.column(RECORD_TIME_COLUMN),
            "number": before[key] + config + 1,
        }
    )
    return KeyBatchUpdate(pa.table({"number": before + np.bincount(key, minlength=len(before))}), rows)


SILENCE_MS = 3000


def report_silence(call: KeyContext[ReadingCount]) -> KeyUpdate[ReadingCount]:
    """Emit a row when a device has been silent for three seconds, with the readings since the last row."""
    seen = call.state or ReadingCount()
    if call.due_timers:
        return KeyUpdate(None, [OutputRow({"readings": seen.number})])
    return KeyUpdate(
        ReadingCount(seen.number + len(call.records)), timers=[Timer(call.watermark + SILENCE_MS)]
    )


SILENCES = """
SELECT device, readings, quiet FROM (
    SELECT device, quiet, readings - lag(readings, 1, 0) OVER (PARTITION BY device ORDER BY quiet) AS readings
    FROM (
        SELECT device, "at" + 3000 AS quiet, sum(count(1)) OVER mine AS readings, lead("at") OVER mine AS next
        FROM sent WHERE NOT late GROUP BY device, "at" WINDOW mine AS (PARTITION BY device ORDER BY "at")
    ) WHERE next IS NULL OR next >= quiet
) WHERE quiet <= $reached ORDER BY ALL
"""


def expect_silences(sent: list[dict[str, Any]], late: pa.Table, watermark: int) -> list[tuple[Any, ...]]:
    """Compute the silences of readings that are not late in DuckDB, up to the watermark."""
    late_addresses = set(
        zip(late.column("partition").to_pylist(), late.column("offset").to_pylist(), strict=True)
    )
    offsets: Counter[int] = Counter()
    rows = []
    for reading in sent:
        partition = partition_of(reading["device"])
        rows.append({**reading, "late": (partition, offsets[partition]) in late_addresses})
        offsets[partition] += 1
    return query_duckdb(SILENCES.replace("$reached", str(watermark)), sent=pa.Table.from_pylist(rows))


def expect_rises(sent: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Find the rises with a loop over all records."""
    rows: list[tuple[Any, ...]] = []
    before: dict[str, float] = {}
    number_query: dict[str, int] = {}
    for reading in sent:
        device, now = reading["device"], reading["temperature"]
        number = number_query.get(device, 0)
        if now is not None and device in before and now - before[device] >= 10:
            rows.append((device, now - before[device], number, reading["at"]))
        if now is not None:
            before[device] = now
        number_query[device] = number + 1
    return sorted(rows)


def test_stateful_functions_see_each_record_once_in_order(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    topic = f"readings{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    returns = (Column("rise", "DOUBLE"), Column("number", "BIGINT"))
    rise_function = StatefulFunction(function_ref(find_rises), state_type(LastReading), returns)
    rise_stage = Stage(
        topic + "_rises", (topic,), rise_function, (), key=("device",), sinks=(PaneLog("rises"),)
    )
    vectorized = StatefulFunction(
        function_ref(number_readings),
        state_type(ReadingCount),
        (Column("number", "BIGINT"),),
        vectorized=True,
    )
    number_stage = Stage(
        topic + "_numbers", (topic,), vectorized, (), key=("device",), sinks=(PaneLog("numbers"),)
    )
    event_time_function = StatefulFunction(
        function_ref(report_silence),
        state_type(ReadingCount),
        (Column("readings", "BIGINT"),),
        order="event_time",
    )
    silence_stage = Stage(
        topic + "_quiet", (topic,), event_time_function, (), key=("device",), sinks=(PaneLog("quiet"),)
    )
    source = PlanSource(
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=20_000)
    )
    plan = Plan(f"rises_{topic}", (source,), (rise_stage, number_stage, silence_stage))
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_readings(600, seed=11)
    for part in range(2):
        batch = sent[part * 300 : (part + 1) * 300]
        for partition in (0, 1):
            send(broker, topic, [r for r in batch if partition_of(r["device"]) == partition], partition)
        runner.run_until_read((part + 1) * 300)
    rise_query = (
        "SELECT device, rise, number, epoch_ms(window_start) FROM found WHERE rise IS NOT NULL ORDER BY ALL"
    )
    assert query_duckdb(rise_query, found=runner.table("panes/rises")) == expect_rises(sent)
    config = BoundedRunConfig(tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250)
    run_bounded(
        runner.plan,
        spark,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        config,
        lambda: 1_000_000,
    )
    bounded = runner.table("runs/panes/rises")
    assert query_duckdb(rise_query, found=bounded) == expect_rises(sent)
    number_query = "SELECT device, epoch_ms(window_start), number FROM found ORDER BY ALL"
    for table in ("panes/numbers", "runs/panes/numbers"):
        assert query_duckdb(number_query, found=runner.table(table)) == query_duckdb(
            'SELECT device, "at", row_number() OVER (PARTITION BY device ORDER BY came) FROM sent ORDER BY ALL',
            sent=pa.Table.from_pylist([{**each, "came": number} for number, each in enumerate(sent)]),
        )
    silence_query = "SELECT device, readings, epoch_ms(window_start) FROM found ORDER BY ALL"
    late = runner.table(f"late/{plan.name}.{silence_stage.name}")
    newest = [max(r["at"] for r in sent if partition_of(r["device"]) == partition) for partition in (0, 1)]
    watermark = min(newest) - 20_000
    assert late.num_rows > 0
    assert query_duckdb(silence_query, found=runner.table("panes/quiet")) == expect_silences(
        sent, late, watermark
    )
    assert query_duckdb(silence_query, found=runner.table("runs/panes/quiet")) == expect_silences(
        sent, late.slice(0, 0), 10**9
    )
    end_query = "SELECT device, number FROM found WHERE rise IS NULL ORDER BY ALL"
    counts = query_duckdb(
        "SELECT device, count(1) FROM sent GROUP BY 1 ORDER BY 1", sent=pa.Table.from_pylist(sent)
    )
    assert query_duckdb(end_query, found=bounded) == counts


def partition_of(device: str) -> int:
    """Return the partition of a device."""
    return int(device[1:]) % 2
