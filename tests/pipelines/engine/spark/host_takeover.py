"""Two hosts of one stream: a separate process that a test can suspend, and a host in this process."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.pipelines.engine.spark.stream_runner import StreamRunner

from penstock.core.clock import now_ms
from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import HostControl
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.stream_config import StreamConfig
from penstock.infra.local_broker import LocalBroker


@contextmanager
def run_blocked_host(
    broker: LocalBroker, topic: str, folder: Path, jars: list[Path]
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """Run a host that blocks in its first batch (see blocked_host.py); yield it and a reader of its log."""
    log = folder / "blocked_host.log"
    command = [
        sys.executable,
        "-m",
        "tests.pipelines.engine.spark.blocked_host",
        folder,
        broker.bootstrap,
        topic,
        *jars,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output)
    try:
        yield process, lambda: log.read_text("utf-8")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text("utf-8")[-3000:]
    finally:
        for member in list_process_tree(process.pid):
            member.kill()
        process.wait()


@contextmanager
def suspend_process(pid: int) -> Iterator[None]:
    """Suspend a process and its children; the clock continues."""
    tree = list_process_tree(pid)
    for member in tree:
        member.suspend()
    try:
        yield
    finally:
        for member in tree:
            member.resume()


def list_process_tree(pid: int) -> list[psutil.Process]:
    """List a process and its children; the list is empty if the process has ended."""
    if not psutil.pid_exists(pid):
        return []
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


@contextmanager
def run_successor(runner: StreamRunner, control: HostControl) -> Iterator[Callable[[], LiveStream]]:
    """Run a second host in this process over the same folders and store; yield a getter of its stream."""
    streams: list[LiveStream] = []

    def open_stream(name: str, fence: WriteFence, on_outcome: Callable[[BatchOutcome], None]) -> LiveStream:
        def report_outcome(outcome: BatchOutcome) -> None:
            runner.progress.record_outcome(outcome)
            on_outcome(outcome)

        config = StreamConfig(BrokerAccess(runner.broker.bootstrap), runner.folder / "warehouse")
        folder = runner.folder / "streams" / name
        streams.append(LiveStream(runner.plan, runner.session, folder, config, fence, report_outcome, now_ms))
        return streams[-1]

    host = StreamHost(
        "successor", control, open_stream, now_ms, is_spark_alive=lambda: True, poll_interval_s=0.1
    )
    stop = threading.Event()
    thread = threading.Thread(target=host.run, args=(stop,), name="successor")
    thread.start()
    try:
        yield lambda: streams[-1]
    finally:
        stop.set()
        thread.join()
