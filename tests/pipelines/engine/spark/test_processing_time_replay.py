"""Windows that the clock has cut are the same after a replay: the ledger tells when each record was read."""

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
MOMENTS = (0, 4_000, 13_000, 26_000)
"""When records come, in milliseconds from the start: some in one window, some in the next, one with nothing."""

MANY = 60

WINDOWS = {
    "sliding": Sliding(10_000, 5_000, time="processing"),
    "tumbling by time": Tumbling(TimePolicy(5_000)),
}
STARTS = {"sliding": "[clock - clock % 5000 - 5000, clock - clock % 5000]"}


def life_over(window: Window, spark: "SparkSession", broker: LocalBroker, folder: Path) -> ReplayRunner:
    topic = f"clocked{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return ReplayRunner(build_plan(topic, window), spark, broker, folder)


def reads_at(runner: ReplayRunner, moment: int, sent: list[tuple[int, dict[str, Any]]]) -> None:
    """Send some records and have the stream read them at a moment."""
    runner.clock = START + moment
    records = make_readings(MANY, seed=moment)
    sent += [(runner.clock, record) for record in records]
    send_to_both_partitions(runner, records)
    runner.run_until_read(len(sent))


def found(runner: ReplayRunner) -> list[tuple[Any, ...]]:
    """Every window with its values."""
    columns = "device, window_start, window_end, n, measured, total, most, average"
    return query_duckdb(f"SELECT {columns} FROM t ORDER BY ALL", t=runner.table(f"latest/{runner.plan.name}"))


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_what_they_were_after_a_replay_while_records_flow(
    name: str, spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    runner = life_over(WINDOWS[name], spark, broker, tmp_path)
    sent: list[tuple[int, dict[str, Any]]] = []
    for moment in MOMENTS[:-1]:
        reads_at(runner, moment, sent)
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    reads_at(runner, MOMENTS[-1], sent)
    before = found(runner)
    unread = make_readings(MANY, seed=99)
    send(runner.broker, runner.plan.sources[0].name, unread)
    runner.clock = START + 41_000
    runner.finish_replay(replay)
    sent += [(runner.clock, record) for record in unread]
    if name in STARTS:
        assert found(runner) == by_clock(sent, STARTS[name])
    else:
        assert [row for row in found(runner) if row in before] == before
    after = found(runner)
    again = runner.prepare_replay(runner.topic_source(), "and again")
    again.run_history()
    runner.finish_replay(again)
    assert found(runner) == after, "a replay of a replay"


def by_clock(sent: list[tuple[int, dict[str, Any]]], starts: str) -> list[tuple[Any, ...]]:
    """The same windows by DuckDB, from when each record was read."""
    measures = "count(1), count(temperature), sum(temperature), max(temperature), avg(temperature)"
    placed = f"SELECT *, unnest({starts}) AS w FROM sent"
    times = "to_timestamp(w / 1000), to_timestamp((w + 10000) / 1000)"
    table = pa.Table.from_pylist([{**record, "clock": clock} for clock, record in sent])
    return query_duckdb(
        f"SELECT device, {times}, {measures} FROM ({placed}) GROUP BY device, w ORDER BY ALL", sent=table
    )


def test_what_was_read_by_nobody_at_a_known_moment_is_refused(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    runner = life_over(Fixed(10_000, time="processing"), spark, broker, tmp_path)
    reads_at(runner, 0, [])
    ledger = tmp_path / "warehouse" / "ledger" / runner.plan.name
    forget_first_rows(ledger)
    with pytest.raises(ReplayError, match=r"its ledger does not record when .* was read from offset 0 to"):
        runner.prepare_replay(runner.topic_source())
    config = BoundedRunConfig(tmp_path / "b", tmp_path / "w")
    with pytest.raises(DefinitionError, match="penstock stream replay"):
        run_bounded(runner.plan, spark, SourceFromOffsets(runner.topic_source(), {}), config, lambda: START)


def forget_first_rows(ledger: Path) -> None:
    """Have a ledger begin later than its topic, as one does whose stream was begun anew."""
    rows = pa.table(DeltaTable(ledger).to_pyarrow_table())
    later = [{**row, "start": row["start"] + 1} for row in rows.to_pylist()]
    write_deltalake(ledger, pa.Table.from_pylist(later, schema=rows.schema), mode="overwrite")
