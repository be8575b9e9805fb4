"""A lookup join keeps the table version of a batch through retries and replays."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, make_readings, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import LookupStep, SqlStep
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, max_, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def make_rooms(shift: int) -> pa.Table:
    """Return the room of each device except two."""
    return pa.table(
        {"device": [f"d{n}" for n in range(18)], "room": [f"room {(n + shift) % 5}" for n in range(18)]}
    )


def build_plan(topic: str) -> Plan:
    name = f"rooms_{topic}"
    steps = (
        LookupStep("given/rooms", ("device",), (Column("room", "STRING"),)),
        SqlStep("SELECT *, coalesce(room, 'nowhere') AS place FROM input"),
    )
    outputs = (AggregateOutput("n", count()), AggregateOutput("most", max_("temperature")))
    stage = Stage(name, (topic,), fixed(10_000), outputs, steps, ("place",), repeatedly(after_count(1)), 10**14,
                  "retracting", sinks=(LatestValues(name),))  # fmt: skip
    return Plan(name, (PlanSource(topic, TopicOrigin(topic), COLUMNS, "at"),), (stage,))


def expect_rooms(batches: list[tuple[list[dict[str, Any]], int]]) -> list[tuple[Any, ...]]:
    """Join each batch with the expected version of the rooms in DuckDB."""
    parts = []
    for sent, shift in batches:
        joined = "SELECT coalesce(room, 'nowhere') AS place, * FROM sent LEFT JOIN rooms USING (device)"
        parts += query_duckdb(
            f'SELECT place, "at", temperature FROM ({joined})',
            sent=pa.Table.from_pylist(sent),
            rooms=make_rooms(shift),
        )
    rows = pa.table(
        dict(zip(("place", "at", "temperature"), map(list, zip(*parts, strict=True)), strict=True))
    )
    return query_duckdb(
        'SELECT place, "at" - "at" % 10000, count(1), max(temperature) FROM rows GROUP BY ALL ORDER BY ALL',
        rows=rows,
    )


RESULT_QUERY = "SELECT place, epoch_ms(window_start), n, most FROM found ORDER BY ALL"


@pytest.fixture
def fail_next_batch(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """While the list is not empty, the next batch fails before it writes its tables."""
    failures: list[bool] = []
    original_write = StreamTables.write

    def write(self: StreamTables, *lookup_table: Any) -> Any:
        if failures:
            failures.clear()
            raise OSError("the machine failed")
        return original_write(self, *lookup_table)

    monkeypatch.setattr(StreamTables, "write", write)
    return failures


def test_retries_and_replays_see_the_lookup_version_of_the_first_run(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, fail_next_batch: list[bool]
) -> None:
    topic = f"readings{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    runner = StreamRunner(build_plan(topic), spark, broker, tmp_path)
    lookup_table = tmp_path / "warehouse" / "given" / "rooms"
    write_deltalake(lookup_table, make_rooms(0))
    sent = make_readings(600, seed=5)
    send(broker, topic, sent[:200])
    runner.run_until_read(200)
    send(broker, topic, sent[200:400])
    fail_next_batch.append(True)
    with pytest.raises(OSError, match="the machine failed"):
        runner.run_until_read(400)
    write_deltalake(lookup_table, make_rooms(1), mode="overwrite")
    runner.run_until_read(400)
    send(broker, topic, sent[400:])
    runner.run_until_read(600)
    expected = expect_rooms([(sent[:400], 0), (sent[400:], 1)])
    assert query_duckdb(RESULT_QUERY, found=runner.table(f"latest/{runner.plan.name}")) == expected
    write_deltalake(lookup_table, make_rooms(2), mode="overwrite")
    config = BoundedRunConfig(
        tmp_path / "bounded", tmp_path / "warehouse" / "runs", 250, live_warehouse=tmp_path / "warehouse"
    )
    run_bounded(
        runner.plan,
        spark,
        TopicSource(spark, topic, BrokerAccess(broker.bootstrap)),
        config,
        lambda: 1_000_000,
    )
    assert query_duckdb(RESULT_QUERY, found=runner.table(f"runs/latest/{runner.plan.name}")) == expected
    ledger = runner.table(f"ledger/{runner.plan.name}")
    assert query_duckdb("SELECT sum(read), sum(accepted) FROM ledger", ledger=ledger) == [(600, 600)]
