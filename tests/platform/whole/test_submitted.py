"""A stream host that spark-submit begins, on a standalone Spark of two workers: the same word runs and ends it."""

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
from tests.platform.whole.books import of_ledger
from tests.platform.whole.expected import Windows, differences, windows_of_records, windows_of_table
from tests.platform.whole.stack import PENSTOCK, until
from tests.platform.whole.test_spark_master import standalone

from penstock.core.clock import now_ms
from penstock.engine.host.control import DesiredRunState
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.platform.control import open_control_store

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]

STREAM = "sensor_minute"
PARTITIONS, RECORDS = 3, 900


@dataclass(frozen=True)
class Submitted:
    """A home folder whose host is begun by spark-submit."""

    home: Path
    environment: dict[str, str]
    port: int

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The host, as `penstock host run` begins it; ended by force where the test did not end it."""
        with (self.home.parent / "host.log").open("ab") as log:
            host = subprocess.Popen([PENSTOCK, "host", "run"], env=self.environment, stdout=log, stderr=log)
        try:
            until(self._answers, 90, "the host to answer")
            yield host
        finally:
            family = psutil.Process(host.pid).children(recursive=True) if host.poll() is None else []
            host.kill()
            host.wait()
            for process in family:
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

    def executors(self) -> int:
        lines = (" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
        mine = str(self.home.parent / "cluster")
        return sum("CoarseGrainedExecutorBackend" in line and mine in line for line in lines)


@pytest.fixture
def submitted(own_broker: LocalBroker, jar_directory: Path, tmp_path: Path) -> Iterator[Submitted]:
    home, port = tmp_path / "home", find_free_ports(1)[0]
    with standalone(tmp_path / "cluster", jar_directory, workers=2, cores=1) as master:
        told = {
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
        yield Submitted(home, {**os.environ, **told}, port)


def fed(broker: LocalBroker) -> list[bytes]:
    """Readings of the last ten minutes, acknowledged; temperatures are halves, which add up exactly."""
    chance, now = random.Random(7), now_ms()
    values = [
        json.dumps(
            {
                "id": f"r{number}",
                "device": f"device-{chance.randrange(9)}",
                "site": "here",
                "at": now - chance.randrange(600_000),
                "temperature": chance.randrange(60) / 2,
            }
        ).encode()
        for number in range(RECORDS)
    ]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce("sensors", value, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return values


def settled(submitted: Submitted, expected: Windows) -> None:
    until((submitted.home / "warehouse" / "latest" / STREAM / "_delta_log").exists, 60, "the table")
    deadline = time.monotonic() + 60
    while found := differences(expected, windows_of_table(submitted.table("latest"))):
        assert time.monotonic() < deadline, f"{len(found)} of {len(expected)} windows differ: {found[:5]}"
        time.sleep(0.5)


def test_a_submitted_host_works_on_both_workers_and_drains_at_the_word_that_ends_any_host(
    submitted: Submitted, own_broker: LocalBroker
) -> None:
    own_broker.create_topic("sensors", PARTITIONS)
    values = fed(own_broker)
    with submitted.running() as host:
        settled(submitted, windows_of_records(values))
        # One of them alone may have done everything before the other was there.
        until(lambda: submitted.executors() == 2, 60, "an executor on each worker")
        host.send_signal(signal.SIGTERM)
        assert host.wait(60) == 0
        until(lambda: submitted.executors() == 0, 30, "its executors to be given back")
    store = open_control_store(f"sqlite:///{submitted.home}/control.db")
    told, lease = store.read_health(STREAM), store.read_lease(STREAM)
    store.close()
    assert (told.state if told else "", lease.expires_at_ms if lease else -1) == ("stopped", 0)
    sizes = Counter(dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS))
    assert list(of_ledger(submitted.table("ledger"), sizes)) == []
