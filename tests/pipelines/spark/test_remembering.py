"""A function with a memory, from a real broker: its rows are those of a plain loop over the records."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from tests.pipelines.spark.running import Running, send
from tests.pipelines.spark.test_stream import COLUMNS, asked, readings

from penstock.infra.local_broker import LocalBroker
from penstock.pipelines.plan import (
    Column,
    PaneLog,
    Plan,
    Remembering,
    Source,
    Topic,
    WatermarkRule,
    opaque,
    state_type,
)
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.remembering import Answer, Call, Row, Timer
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.stored.topic import StoredTopic
from penstock.pipelines.vectorised import AT, KEY, TIME, Answers, Calls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@dataclass(frozen=True)
class Last:
    """The reading before, and how many there were."""

    temperature: float | None
    number: int


def rises(call: Call[Last]) -> Answer[Last]:
    """Tell of every reading that is ten degrees above the one before it, and how many there were at the end."""
    last, rows = call.state or Last(None, 0), []
    for read in call.records:
        now = read.fields["temperature"]
        if now is not None and last.temperature is not None and now - last.temperature >= 10:
            rows.append(Row({"rise": now - last.temperature, "number": last.number}, read.time))
        last = Last(now if now is not None else last.temperature, last.number + 1)
    rows += [Row({"rise": None, "number": last.number}, timer.at) for timer in call.timers]
    return Answer(last, rows, None if call.timers else [Timer(10**15)])


@dataclass(frozen=True)
class Seen:
    """How many readings there were."""

    number: int = 0


def numbered(calls: Calls) -> Answers:
    """Number the readings of every device, all devices at once."""
    key = calls.records.column(KEY).to_numpy()
    before = calls.states.column("number").fill_null(0).to_numpy()
    place = np.arange(len(key)) - np.searchsorted(key, np.arange(len(before)))[key]
    rows = pa.table({KEY: key, AT: calls.records.column(TIME), "number": before[key] + place + 1})
    return Answers(pa.table({"number": before + np.bincount(key, minlength=len(before))}), rows)


QUIET = 3000


def silence(call: Call[Seen]) -> Answer[Seen]:
    """Tell when a device had been silent for three seconds, and after how many readings since the last time."""
    seen = call.state or Seen()
    if call.timers:
        return Answer(None, [Row({"readings": seen.number})])
    return Answer(Seen(seen.number + len(call.records)), timers=[Timer(call.watermark + QUIET)])


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
    return asked(SILENCES.replace("$reached", str(reached)), sent=pa.Table.from_pylist(rows))


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
    window = Remembering(opaque(rises), state_type(Last), returns)
    stage = Stage(topic + "_rises", (topic,), window, (), key=("device",), sinks=(PaneLog("rises"),))
    at_once = Remembering(opaque(numbered), state_type(Seen), (Column("number", "BIGINT"),), vectorised=True)
    beside = Stage(topic + "_numbers", (topic,), at_once, (), key=("device",), sinks=(PaneLog("numbers"),))
    told = Remembering(opaque(silence), state_type(Seen), (Column("readings", "BIGINT"),), order="event_time")
    in_time = Stage(topic + "_quiet", (topic,), told, (), key=("device",), sinks=(PaneLog("quiet"),))
    source = Source(topic, Topic(topic), COLUMNS, "at", WatermarkRule(bound=20_000))
    plan = Plan(f"rises_{topic}", (source,), (stage, beside, in_time))
    running = Running(plan, spark, broker, tmp_path)
    sent = readings(600, seed=11)
    for part in range(2):
        some = sent[part * 300 : (part + 1) * 300]
        for partition in (0, 1):
            send(broker, topic, [r for r in some if hash_of(r["device"]) == partition], partition)
        running.until_read((part + 1) * 300)
    found = (
        "SELECT device, rise, number, epoch_ms(window_start) FROM found WHERE rise IS NOT NULL ORDER BY ALL"
    )
    assert asked(found, found=running.table("panes/rises")) == by_a_loop(sent)
    place = BoundedConfig(tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250)
    run_bounded(running.plan, spark, StoredTopic(spark, topic, broker.bootstrap), place, lambda: 1_000_000)
    whole = running.table("runs/panes/rises")
    assert asked(found, found=whole) == by_a_loop(sent)
    numbers = "SELECT device, epoch_ms(window_start), number FROM found ORDER BY ALL"
    for table in ("panes/numbers", "runs/panes/numbers"):
        assert asked(numbers, found=running.table(table)) == asked(
            'SELECT device, "at", row_number() OVER (PARTITION BY device ORDER BY came) FROM sent ORDER BY ALL',
            sent=pa.Table.from_pylist([{**each, "came": number} for number, each in enumerate(sent)]),
        )
    quiet = "SELECT device, readings, epoch_ms(window_start) FROM found ORDER BY ALL"
    late = running.table(f"late/{plan.name}.{in_time.name}")
    newest = [max(r["at"] for r in sent if hash_of(r["device"]) == partition) for partition in (0, 1)]
    reached = min(newest) - 20_000
    assert late.num_rows > 0
    assert asked(quiet, found=running.table("panes/quiet")) == silences(sent, late, reached)
    assert asked(quiet, found=running.table("runs/panes/quiet")) == silences(sent, late.slice(0, 0), 10**9)
    ends = "SELECT device, number FROM found WHERE rise IS NULL ORDER BY ALL"
    counts = asked("SELECT device, count(1) FROM sent GROUP BY 1 ORDER BY 1", sent=pa.Table.from_pylist(sent))
    assert asked(ends, found=whole) == counts


def hash_of(device: str) -> int:
    """The partition of a device."""
    return int(device[1:]) % 2
