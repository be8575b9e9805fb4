"""A function with a memory, from a real broker: its rows are those of a plain loop over the records."""

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
from penstock.engine.plan import (
    Column,
    Plan,
    PlanSource,
    StatefulFunction,
    TopicOrigin,
    WatermarkStrategy,
    function_ref,
    state_type,
)
from penstock.engine.plan.stages import Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@dataclass(frozen=True)
class Last:
    """The reading before, and how many there were."""

    temperature: float | None
    number: int


def rises(call: KeyContext[Last]) -> KeyUpdate[Last]:
    """Tell of every reading that is ten degrees above the one before it, and how many there were at the end."""
    last, rows = call.state or Last(None, 0), []
    for read in call.records:
        now = read.fields["temperature"]
        if now is not None and last.temperature is not None and now - last.temperature >= 10:
            rows.append(OutputRow({"rise": now - last.temperature, "number": last.number}, read.time))
        last = Last(now if now is not None else last.temperature, last.number + 1)
    rows += [OutputRow({"rise": None, "number": last.number}, timer.at) for timer in call.due_timers]
    return KeyUpdate(last, rows, None if call.due_timers else [Timer(10**15)])


@dataclass(frozen=True)
class Seen:
    """How many readings there were."""

    number: int = 0


def numbered(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Number the readings of every device, all devices at once."""
    key = calls.records.column(KEY_INDEX_COLUMN).to_numpy()
    before = calls.states.column("number").fill_null(0).to_numpy()
    place = np.arange(len(key)) - np.searchsorted(key, np.arange(len(before)))[key]
    rows = pa.table(
        {
            KEY_INDEX_COLUMN: key,
            ROW_TIME_COLUMN: calls.records.column(RECORD_TIME_COLUMN),
            "number": before[key] + place + 1,
        }
    )
    return KeyBatchUpdate(pa.table({"number": before + np.bincount(key, minlength=len(before))}), rows)


QUIET = 3000


def silence(call: KeyContext[Seen]) -> KeyUpdate[Seen]:
    """Tell when a device had been silent for three seconds, and after how many readings since the last time."""
    seen = call.state or Seen()
    if call.due_timers:
        return KeyUpdate(None, [OutputRow({"readings": seen.number})])
    return KeyUpdate(Seen(seen.number + len(call.records)), timers=[Timer(call.watermark + QUIET)])


SILENCES = """
SELECT device, readings, quiet FROM (
    SELECT device, quiet, readings - lag(readings, 1, 0) OVER (PARTITION BY device ORDER BY quiet) AS readings
    FROM (
        SELECT device, "at" + 3000 AS quiet, sum(count(1)) OVER mine AS readings, lead("at") OVER mine AS next
        FROM sent WHERE NOT late GROUP BY device, "at" WINDOW mine AS (PARTITION BY device ORDER BY "at")
    ) WHERE next IS NULL OR next >= quiet
) WHERE quiet <= $reached ORDER BY ALL
"""


def silences(sent: list[dict[str, Any]], late: pa.Table, reached: int) -> list[tuple[Any, ...]]:
    """The same by DuckDB, over the readings that were in time, as far as the watermark came."""
    missed = set(zip(late.column("partition").to_pylist(), late.column("offset").to_pylist(), strict=True))
    offsets: Counter[int] = Counter()
    rows = []
    for reading in sent:
        partition = hash_of(reading["device"])
        rows.append({**reading, "late": (partition, offsets[partition]) in missed})
        offsets[partition] += 1
    return query_duckdb(SILENCES.replace("$reached", str(reached)), sent=pa.Table.from_pylist(rows))


def by_a_loop(sent: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The same over all records of a device."""
    rows: list[tuple[Any, ...]] = []
    before: dict[str, float] = {}
    numbers: dict[str, int] = {}
    for reading in sent:
        device, now = reading["device"], reading["temperature"]
        number = numbers.get(device, 0)
        if now is not None and device in before and now - before[device] >= 10:
            rows.append((device, now - before[device], number, reading["at"]))
        if now is not None:
            before[device] = now
        numbers[device] = number + 1
    return sorted(rows)


def test_it_sees_each_record_once_in_order_across_restarts_and_bounded(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    topic = f"readings{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    returns = (Column("rise", "DOUBLE"), Column("number", "BIGINT"))
    window = StatefulFunction(function_ref(rises), state_type(Last), returns)
    stage = Stage(topic + "_rises", (topic,), window, (), key=("device",), sinks=(PaneLog("rises"),))
    at_once = StatefulFunction(
        function_ref(numbered), state_type(Seen), (Column("number", "BIGINT"),), vectorized=True
    )
    beside = Stage(topic + "_numbers", (topic,), at_once, (), key=("device",), sinks=(PaneLog("numbers"),))
    told = StatefulFunction(
        function_ref(silence), state_type(Seen), (Column("readings", "BIGINT"),), order="event_time"
    )
    in_time = Stage(topic + "_quiet", (topic,), told, (), key=("device",), sinks=(PaneLog("quiet"),))
    source = PlanSource(
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=20_000)
    )
    plan = Plan(f"rises_{topic}", (source,), (stage, beside, in_time))
    runner = StreamRunner(plan, spark, broker, tmp_path)
    sent = make_readings(600, seed=11)
    for part in range(2):
        some = sent[part * 300 : (part + 1) * 300]
        for partition in (0, 1):
            send(broker, topic, [r for r in some if hash_of(r["device"]) == partition], partition)
        runner.run_until_read((part + 1) * 300)
    found = (
        "SELECT device, rise, number, epoch_ms(window_start) FROM found WHERE rise IS NOT NULL ORDER BY ALL"
    )
    assert query_duckdb(found, found=runner.table("panes/rises")) == by_a_loop(sent)
    place = BoundedRunConfig(tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250)
    run_bounded(
        runner.plan,
        spark,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        place,
        lambda: 1_000_000,
    )
    whole = runner.table("runs/panes/rises")
    assert query_duckdb(found, found=whole) == by_a_loop(sent)
    numbers = "SELECT device, epoch_ms(window_start), number FROM found ORDER BY ALL"
    for table in ("panes/numbers", "runs/panes/numbers"):
        assert query_duckdb(numbers, found=runner.table(table)) == query_duckdb(
            'SELECT device, "at", row_number() OVER (PARTITION BY device ORDER BY came) FROM sent ORDER BY ALL',
            sent=pa.Table.from_pylist([{**each, "came": number} for number, each in enumerate(sent)]),
        )
    quiet = "SELECT device, readings, epoch_ms(window_start) FROM found ORDER BY ALL"
    late = runner.table(f"late/{plan.name}.{in_time.name}")
    newest = [max(r["at"] for r in sent if hash_of(r["device"]) == partition) for partition in (0, 1)]
    reached = min(newest) - 20_000
    assert late.num_rows > 0
    assert query_duckdb(quiet, found=runner.table("panes/quiet")) == silences(sent, late, reached)
    assert query_duckdb(quiet, found=runner.table("runs/panes/quiet")) == silences(
        sent, late.slice(0, 0), 10**9
    )
    ends = "SELECT device, number FROM found WHERE rise IS NULL ORDER BY ALL"
    counts = query_duckdb(
        "SELECT device, count(1) FROM sent GROUP BY 1 ORDER BY 1", sent=pa.Table.from_pylist(sent)
    )
    assert query_duckdb(ends, found=whole) == counts


def hash_of(device: str) -> int:
    """The partition of a device."""
    return int(device[1:]) % 2
