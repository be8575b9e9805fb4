"""A stream host started by spark-submit on a standalone Spark with two workers."""

import json
import os
import random
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from tests.patience import PATIENCE_S
from tests.platform.whole.expected_windows import Windows, compute_windows, find_differences, read_windows
from tests.platform.whole.scratch_stack import PENSTOCK, poll_until
from tests.platform.whole.table_comparison import find_ledger_errors
from tests.platform.whole.test_spark_master import run_spark_cluster

from penstock.core.clock import now_ms
from penstock.engine.host.control import DesiredRunState
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.platform.control import open_control_store

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

STREAM = "sensor_minute"
PARTITIONS, RECORDS = 3, 900


@dataclass(frozen=True)
class SubmittedHost:
    """A home folder whose host is started by spark-submit."""

    home: Path
    environment: dict[str, str]
    port: int

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run `penstock host run` until the context ends."""
        with (self.home.parent / "host.log").open("ab") as log:
            host = subprocess.Popen([PENSTOCK, "host", "run"], env=self.environment, stdout=log, stderr=log)
        try:
            poll_until(self._answers, PATIENCE_S, "the host to answer")
            yield host
        finally:
            children = psutil.Process(host.pid).children(recursive=True) if host.poll() is None else []
            host.kill()
            host.wait()
            for process in children:
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return STREAM in json.load(answer)["streams"]
        except OSError:
            return False

    def table(self, kind: str) -> pa.Table:
        return DeltaTable(self.home / "warehouse" / kind / STREAM).to_pyarrow_table()

    def count_executors(self) -> int:
        lines = (" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
        cluster_folder = str(self.home.parent / "cluster")
        return sum("CoarseGrainedExecutorBackend" in line and cluster_folder in line for line in lines)


@pytest.fixture
def submitted(own_broker: LocalBroker, jar_directory: Path, tmp_path: Path) -> Iterator[SubmittedHost]:
    home, port = tmp_path / "home", find_free_ports(1)[0]
    with run_spark_cluster(tmp_path / "cluster", jar_directory, workers=2, cores=1) as master:
        settings = {
            "PENSTOCK_HOME": str(home),
            "PENSTOCK_JARS": str(jar_directory),
            "PENSTOCK_KAFKA__BOOTSTRAP": own_broker.bootstrap,
            "PENSTOCK_SPARK__MASTER": master,
            "PENSTOCK_SPARK__LAUNCH": "submit",
            "PENSTOCK_HOST__METRICS_PORT": str(port),
            "PENSTOCK_HOST__DRIVER_BUDGET_MB": "0",
        }
        store = open_control_store(f"sqlite:///{home}/control.db")
        store.set_desired_state(STREAM, DesiredRunState.RUNNING, now_ms())
        store.close()
        yield SubmittedHost(home, {**os.environ, **settings}, port)


def send_readings(broker: LocalBroker) -> list[bytes]:
    """Send readings of the last ten minutes; temperatures are multiples of one half, which add up exactly."""
    rng, now = random.Random(7), now_ms()
    values = [
        json.dumps(
            {
                "id": f"r{number}",
                "device": f"device-{rng.randrange(9)}",
                "site": "here",
                "at": now - rng.randrange(600_000),
                "temperature": rng.randrange(60) / 2,
            }
        ).encode()
        for number in range(RECORDS)
    ]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce("sensors", value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return values


def wait_for_windows(submitted: SubmittedHost, expected: Windows) -> None:
    poll_until(
        (submitted.home / "warehouse" / "latest" / STREAM / "_delta_log").exists, PATIENCE_S, "the table"
    )
    deadline = time.monotonic() + 60
    while found := find_differences(expected, read_windows(submitted.table("latest"))):
        assert time.monotonic() < deadline, f"{len(found)} of {len(expected)} windows differ: {found[:5]}"
        time.sleep(0.5)


def test_a_submitted_host_uses_both_workers_and_drains_on_sigterm(
    submitted: SubmittedHost, own_broker: LocalBroker
) -> None:
    own_broker.create_topic("sensors", PARTITIONS)
    values = send_readings(own_broker)
    with submitted.running() as host:
        wait_for_windows(submitted, compute_windows(values))
        # One executor may have done everything before the other started.
        poll_until(lambda: submitted.count_executors() == 2, PATIENCE_S, "an executor on each worker")
        host.send_signal(signal.SIGTERM)
        assert host.wait(PATIENCE_S) == 0
        poll_until(lambda: submitted.count_executors() == 0, PATIENCE_S, "its executors to be released")
    store = open_control_store(f"sqlite:///{submitted.home}/control.db")
    health, lease = store.read_health(STREAM), store.read_lease(STREAM)
    store.close()
    assert (health.state if health else "", lease.expires_at_ms if lease else -1) == ("stopped", 0)
    sizes = Counter(dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS))
    assert list(find_ledger_errors(submitted.table("ledger"), sizes)) == []
