"""A replay of processing-time windows uses the batch times in the ledger."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.spark.stream_runner import send
from tests.pipelines.engine.spark.test_live_stream import build_plan, make_readings, query_duckdb
from tests.pipelines.engine.spark.test_replay import ReplayRunner, send_to_both_partitions

from penstock.engine.errors import DefinitionError, ReplayError
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.spark.bounded_sources.start_offsets import SourceFromOffsets
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

START = 1_000_000
READ_TIMES_MS = (0, 4_000, 13_000, 26_000)
"""The read times after the start: two in one window, one in the next, one after a gap."""

RECORD_COUNT = 60

WINDOWS = {
    "sliding": Sliding(10_000, 5_000, time="processing"),
    "tumbling by time": Tumbling(TimePolicy(5_000)),
}
STARTS = {"sliding": "[clock - clock % 5000 - 5000, clock - clock % 5000]"}


def create_runner(window: Window, spark: "SparkSession", broker: LocalBroker, folder: Path) -> ReplayRunner:
    topic = f"clocked{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return ReplayRunner(build_plan(topic, window), spark, broker, folder)


def read_at(runner: ReplayRunner, read_time_ms: int, sent: list[tuple[int, dict[str, Any]]]) -> None:
    """Send records and read them at a batch time."""
    runner.clock = START + read_time_ms
    records = make_readings(RECORD_COUNT, seed=read_time_ms)
    sent += [(runner.clock, record) for record in records]
    send_to_both_partitions(runner, records)
    runner.run_until_read(len(sent))


def list_device_windows(runner: ReplayRunner) -> list[tuple[Any, ...]]:
    """List all windows with their values."""
    columns = "device, window_start, window_end, n, measured, total, most, average"
    return query_duckdb(f"SELECT {columns} FROM t ORDER BY ALL", t=runner.table(f"latest/{runner.plan.name}"))


@pytest.mark.parametrize("name", WINDOWS)
def test_a_replay_during_live_traffic_keeps_the_windows(
    name: str, spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    runner = create_runner(WINDOWS[name], spark, broker, tmp_path)
    sent: list[tuple[int, dict[str, Any]]] = []
    for read_time_ms in READ_TIMES_MS[:-1]:
        read_at(runner, read_time_ms, sent)
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    read_at(runner, READ_TIMES_MS[-1], sent)
    before = list_device_windows(runner)
    late_records = make_readings(RECORD_COUNT, seed=99)
    send(runner.broker, runner.plan.sources[0].name, late_records)
    runner.clock = START + 41_000
    runner.finish_replay(replay)
    sent += [(runner.clock, record) for record in late_records]
    if name in STARTS:
        assert list_device_windows(runner) == expect_windows_by_clock(sent, STARTS[name])
    else:
        assert [row for row in list_device_windows(runner) if row in before] == before
    after = list_device_windows(runner)
    second_replay = runner.prepare_replay(runner.topic_source(), "and again")
    second_replay.run_history()
    runner.finish_replay(second_replay)
    assert list_device_windows(runner) == after, "a replay of a replay"


def expect_windows_by_clock(sent: list[tuple[int, dict[str, Any]]], starts: str) -> list[tuple[Any, ...]]:
    """Compute the windows in DuckDB from the time when each record was read."""
    measures = "count(1), count(temperature), sum(temperature), max(temperature), avg(temperature)"
    windowed = f"SELECT *, unnest({starts}) AS w FROM sent"
    times = "to_timestamp(w / 1000), to_timestamp((w + 10000) / 1000)"
    table = pa.Table.from_pylist([{**record, "clock": clock} for clock, record in sent])
    return query_duckdb(
        f"SELECT device, {times}, {measures} FROM ({windowed}) GROUP BY device, w ORDER BY ALL", sent=table
    )


def test_a_replay_of_offsets_without_a_batch_time_is_refused(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    runner = create_runner(Fixed(10_000, time="processing"), spark, broker, tmp_path)
    read_at(runner, 0, [])
    ledger = tmp_path / "warehouse" / "ledger" / runner.plan.name
    drop_first_offsets(ledger)
    with pytest.raises(ReplayError, match=r"its ledger does not record when .* was read from offset 0 to"):
        runner.prepare_replay(runner.topic_source())
    config = BoundedRunConfig(tmp_path / "b", tmp_path / "w")
    with pytest.raises(DefinitionError, match="penstock stream replay"):
        run_bounded(runner.plan, spark, SourceFromOffsets(runner.topic_source(), {}), config, lambda: START)


def drop_first_offsets(ledger: Path) -> None:
    """Remove the first offsets from a ledger, as if the stream had started later."""
    rows = pa.table(DeltaTable(ledger).to_pyarrow_table())
    later = [{**row, "start": row["start"] + 1} for row in rows.to_pylist()]
    write_deltalake(ledger, pa.Table.from_pylist(later, schema=rows.schema), mode="overwrite")
