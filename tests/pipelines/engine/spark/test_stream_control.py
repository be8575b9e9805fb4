"""A stream is paused, stopped or taken over without losing or repeating records."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.patience import PATIENCE_S
from tests.pipelines.engine.spark.host_takeover import run_blocked_host, run_successor, suspend_process
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
    query_duckdb,
    sum_accounts,
)

from penstock.core.waiting import wait_until
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.host.control import DesiredRunState
from penstock.engine.plan.steps import ApplyStep
from penstock.infra.local_broker import LocalBroker
from penstock.platform.control import ControlStore, open_control_store
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"steered{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def list_latest(runner: StreamRunner) -> list[tuple[Any, ...]]:
    return list_windows(runner.table(f"latest/{runner.plan.name}"))


def test_a_paused_stream_reads_nothing_and_resumes_without_loss(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    first, second, third = make_readings(200, seed=1), make_readings(200, seed=2), make_readings(100, seed=3)
    send(broker, topic, first)
    stream = runner.start()
    runner.progress.wait_for(200, stream)
    stream.pause()
    send(broker, topic, second, partition=1)
    time.sleep(1.0)
    assert (runner.progress.records_read, stream.failure()) == (200, None)
    stream.resume()
    runner.progress.wait_for(400, stream)
    stream.pause()
    stream.drain()
    send(broker, topic, third)
    stream = runner.start(reading=False)
    assert (runner.progress.records_read, stream.failure()) == (400, None)
    stream.resume()
    runner.progress.wait_for(500, stream)
    stream.drain()
    assert list_latest(runner) == expect_windows(first + second + third, TEN_SECONDS, 10_000)
    assert sum_accounts(runner, "read", "accepted") == [(500, 500)]


def test_a_stop_cancels_a_batch_and_the_next_start_runs_it_once(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    gate, waiting = tmp_path / "gate", tmp_path / "waiting"

    def block_in_udf(frame: "DataFrame") -> "DataFrame":
        from pyspark.sql.functions import udf

        def wait_for_gate(device):  # with annotations, Spark would infer another kind of UDF
            waiting.touch()
            while not gate.exists():
                time.sleep(0.05)
            return device

        return frame.withColumn("device", udf(wait_for_gate, "string")("device"))

    steps = (ApplyStep(function_ref(block_in_udf, version="1")),)
    runner = StreamRunner(build_plan(topic, fixed("10 seconds"), steps), spark, broker, tmp_path)
    sent = make_readings(100, seed=1)
    send(broker, topic, sent)
    stream = runner.start()
    wait_until(waiting.exists, PATIENCE_S, "a running batch")
    assert stream.describe_current_batch().startswith("batch 0, offsets ")
    # If the stop waits for the batch, the gate opens and the batch is committed.
    timer = threading.Timer(120, gate.touch)
    timer.start()
    stream.stop()
    timer.cancel()
    assert not gate.exists()
    assert runner.progress.records_read == 0
    gate.touch()
    runner.run_until_read(100)
    assert list_latest(runner) == expect_windows(sent, TEN_SECONDS, 10_000)
    assert query_duckdb(
        "SELECT count(DISTINCT batch_id) FROM l", l=runner.table(f"ledger/{runner.plan.name}")
    ) == [(1,)]


def test_a_suspended_host_is_fenced_after_a_takeover(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, spark_jar_paths: list[Path]
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    store, name = open_control_store(f"sqlite:///{tmp_path}/control.db"), runner.plan.name
    store.set_desired_state(name, DesiredRunState.RUNNING, 0)
    first, second, third = make_readings(200, seed=1), make_readings(100, seed=2), make_readings(50, seed=3)
    send(broker, topic, first)
    with run_blocked_host(broker, topic, tmp_path, spark_jar_paths) as (process, read_log):
        wait_until((tmp_path / "waiting").exists, PATIENCE_S, "the first host to be in the middle of a file")
        with run_successor(runner, store) as stream:
            with suspend_process(process.pid):
                wait_until(lambda: read_holder(store, name) == "successor", PATIENCE_S, "the takeover")
                wait_until(lambda: runner.progress.records_read > 0, PATIENCE_S, "its first batch")
                runner.progress.wait_for(200, stream())
                send(broker, topic, second, partition=1)
                runner.progress.wait_for(300, stream())
                (tmp_path / "gate").touch()
            wait_until(
                lambda: "another host took it over, so this host (epoch 1)" in read_log(),
                PATIENCE_S,
                "the fencing",
            )
            wait_until(
                lambda: "Waiting for lease (holder=successor)" in read_log(),
                PATIENCE_S,
                "the wait for the lease",
            )
            assert list_latest(runner) == expect_windows(first + second, TEN_SECONDS, 10_000)
            assert sum_accounts(runner, "read", "accepted") == [(300, 300)]
            send(broker, topic, third)
            runner.progress.wait_for(350, stream())
            assert list_latest(runner) == expect_windows(first + second + third, TEN_SECONDS, 10_000)
        wait_until(
            lambda: read_holder(store, name) == "blocked", PATIENCE_S, "the first host to get the lease back"
        )
    panes = runner.table(f"panes/{name}")
    assert query_duckdb("SELECT sum(CASE kind WHEN 'insert' THEN n ELSE -n END) FROM log", log=panes) == [
        (350,)
    ]
    store.close()


def test_a_batch_that_a_fenced_host_plans_does_not_block_its_successor(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    runner = StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)
    first, second, third = make_readings(200, seed=1), make_readings(100, seed=2), make_readings(50, seed=3)
    send(broker, topic, first)
    runner.run_until_read(200)
    [first_checkpoint] = (tmp_path / "stream").glob("checkpoint*")
    stream = runner.start()
    try:
        send(broker, topic, second)
        runner.progress.wait_for(300, stream)
        # The first host plans a batch before it checks its fence.
        newest = max(
            (tmp_path / "stream").glob("checkpoint*/offsets/[0-9]*"), key=lambda path: int(path.name)
        )
        (first_checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (first_checkpoint / "offsets" / f"{int(newest.name) + 1}").write_bytes(newest.read_bytes())
        send(broker, topic, third)
        runner.progress.wait_for(350, stream)
    finally:
        stream.drain()
    assert list_latest(runner) == expect_windows(first + second + third, TEN_SECONDS, 10_000)
    assert sum_accounts(runner, "read", "accepted") == [(350, 350)]


def read_holder(store: ControlStore, stream: str) -> str:
    """Return the holder of the lease of a stream."""
    lease = store.read_lease(stream)
    return lease.holder if lease else ""
