"""Two hosts of one stream: one as a process of its own that can be put to sleep, and one in this process."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.pipelines.engine.spark.stream_runner import Running

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
def sleeper(
    broker: LocalBroker, topic: str, folder: Path, jars: list[Path]
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """A host that waits in its first batch (see blocked_host.py); with it comes what reads its log."""
    log = folder / "sleeper.log"
    command = [
        sys.executable,
        "-m",
        "tests.pipelines.engine.spark.blocked_host",
        folder,
        broker.bootstrap,
        topic,
        *jars,
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out)
    try:
        yield process, lambda: log.read_text("utf-8")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text("utf-8")[-3000:]
    finally:
        for one in family(process.pid):
            one.kill()
        process.wait()


@contextmanager
def suspended(pid: int) -> Iterator[None]:
    """A process, with all that it has started, stopped for a while: its clock goes on, it does not."""
    stopped = family(pid)
    for one in stopped:
        one.suspend()
    try:
        yield
    finally:
        for one in stopped:
            one.resume()


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it has started; nothing where it is over."""
    if not psutil.pid_exists(pid):
        return []
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


@contextmanager
def successor(running: Running, control: HostControl) -> Iterator[Callable[[], LiveStream]]:
    """A host of this process, over the same folders and store; with it comes its stream, once there is one."""
    begun: list[LiveStream] = []

    def make(name: str, right: WriteFence, told: Callable[[BatchOutcome], None]) -> LiveStream:
        def tell(outcome: BatchOutcome) -> None:
            running.progress.told(outcome)
            told(outcome)

        config = StreamConfig(BrokerAccess(running.broker.bootstrap), running.folder / "warehouse")
        folder = running.folder / "streams" / name
        begun.append(LiveStream(running.plan, running.session, folder, config, right, tell, now_ms))
        return begun[-1]

    host = StreamHost("successor", control, make, now_ms, is_spark_alive=lambda: True, poll_interval_s=0.1)
    stop = threading.Event()
    working = threading.Thread(target=host.run, args=(stop,), name="successor")
    working.start()
    try:
        yield lambda: begun[-1]
    finally:
        stop.set()
        working.join()
