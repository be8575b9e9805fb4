"""Records that are looked up in a real table, from a real broker: killed while the table changes, and run again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, make_readings, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan import AggregateOutput, Column, LookupStep, Plan, PlanSource, SqlStep, TopicOrigin
from penstock.engine.plan.stages import Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, max_, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def rooms(shift: int) -> pa.Table:
    """The room of each device but two."""
    return pa.table(
        {"device": [f"d{n}" for n in range(18)], "room": [f"room {(n + shift) % 5}" for n in range(18)]}
    )


def plan_over(topic: str) -> Plan:
    name = f"rooms_{topic}"
    steps = (
        LookupStep("given/rooms", ("device",), (Column("room", "STRING"),)),
        SqlStep("SELECT *, coalesce(room, 'nowhere') AS place FROM input"),
    )
    outputs = (AggregateOutput("n", count()), AggregateOutput("most", max_("temperature")))
    stage = Stage(name, (topic,), fixed(10_000), outputs, steps, ("place",), repeatedly(after_count(1)), 10**14,
                  "retracting", sinks=(LatestValues(name),))  # fmt: skip
    return Plan(name, (PlanSource(topic, TopicOrigin(topic), COLUMNS, "at"),), (stage,))


def by_hand(batches: list[tuple[list[dict[str, Any]], int]]) -> list[tuple[Any, ...]]:
    """The same with DuckDB: each batch joined with the rooms that it is to see."""
    parts = []
    for sent, shift in batches:
        joined = "SELECT coalesce(room, 'nowhere') AS place, * FROM sent LEFT JOIN rooms USING (device)"
        parts += query_duckdb(
            f'SELECT place, "at", temperature FROM ({joined})',
            sent=pa.Table.from_pylist(sent),
            rooms=rooms(shift),
        )
    rows = pa.table(
        dict(zip(("place", "at", "temperature"), map(list, zip(*parts, strict=True)), strict=True))
    )
    return query_duckdb(
        'SELECT place, "at" - "at" % 10000, count(1), max(temperature) FROM rows GROUP BY ALL ORDER BY ALL',
        rows=rows,
    )


FOUND = "SELECT place, epoch_ms(window_start), n, most FROM found ORDER BY ALL"


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Once it holds something, the next batch ends before its tables are written."""
    armed: list[bool] = []
    really = StreamTables.write

    def write(self: StreamTables, *given: Any) -> Any:
        if armed:
            armed.clear()
            raise OSError("the machine went away")
        return really(self, *given)

    monkeypatch.setattr(StreamTables, "write", write)
    return armed


def test_a_batch_sees_one_version_however_often_it_is_run_and_a_replay_sees_the_same(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, killing: list[bool]
) -> None:
    topic = f"readings{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    runner = StreamRunner(plan_over(topic), spark, broker, tmp_path)
    given = tmp_path / "warehouse" / "given" / "rooms"
    write_deltalake(given, rooms(0))
    sent = make_readings(600, seed=5)
    send(broker, topic, sent[:200])
    runner.run_until_read(200)
    send(broker, topic, sent[200:400])
    killing.append(True)
    with pytest.raises(OSError, match="the machine went away"):
        runner.run_until_read(400)
    write_deltalake(given, rooms(1), mode="overwrite")
    runner.run_until_read(400)
    send(broker, topic, sent[400:])
    runner.run_until_read(600)
    wanted = by_hand([(sent[:400], 0), (sent[400:], 1)])
    assert query_duckdb(FOUND, found=runner.table(f"latest/{runner.plan.name}")) == wanted
    write_deltalake(given, rooms(2), mode="overwrite")
    place = BoundedRunConfig(
        tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250, live_warehouse=tmp_path / "warehouse"
    )
    run_bounded(
        runner.plan,
        spark,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        place,
        lambda: 1_000_000,
    )
    assert query_duckdb(FOUND, found=runner.table(f"runs/latest/{runner.plan.name}")) == wanted
    ledger = runner.table(f"ledger/{runner.plan.name}")
    assert query_duckdb("SELECT sum(read), sum(folded) FROM ledger", ledger=ledger) == [(600, 600)]
