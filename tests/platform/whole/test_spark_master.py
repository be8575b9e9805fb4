"""A stream writes the same tables on a standalone Spark as on `local[*]`."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from tests.patience import PATIENCE_S
from tests.platform.security.declared_listeners import find_undeclared, read_sockets
from tests.platform.whole.spark_run import CLOCK, STREAM

from penstock.engine.spark.jvm.classes import SPARK_CLASSES_JAR
from penstock.infra.local.action_requests import MasterRequest, SparkClusterRequest, WorkerRequest
from penstock.infra.local.detached_programs import ProgramRecord, stop_program
from penstock.infra.local.spark_cluster import STOP_TIMEOUT_S, master_url, start_master, start_worker
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

VALID_COUNT, INVALID_COUNT = 3_500, 25
TABLES = [f"panes/{STREAM}", f"latest/{STREAM}", f"late/{STREAM}", f"ledger/{STREAM}", "quarantine/sensors"]


@contextmanager
def run_spark_cluster(folder: Path, jars: Path, workers: int = 1, cores: int = 2) -> Iterator[str]:
    """Run a Spark master and its workers; yield the address of the master."""
    spark = SparkClusterRequest(str(folder), find_first_port(), str(jars))
    try:
        start_master(MasterRequest(spark, "a start"))
        for number in range(1, workers + 1):
            start_worker(WorkerRequest(spark, number, cores, 1024, "a start"))
        yield master_url(spark)
    finally:
        for name in (*(f"spark-worker-{number}" for number in range(1, workers + 1)), "spark-master"):
            stop_program(folder, name, STOP_TIMEOUT_S)


def find_first_port() -> int:
    """Find the first of thirty consecutive free ports."""
    return find_free_ports(30, consecutive=True)[0]


def generate_values(seed: int) -> Iterator[bytes]:
    """Generate readings, some of them late, and invalid records. Multiples of one half add up exactly."""
    rng = random.Random(seed)
    invalid = set(rng.sample(range(VALID_COUNT + INVALID_COUNT), INVALID_COUNT))
    for number in range(VALID_COUNT + INVALID_COUNT):
        at = CLOCK - 20 * 60_000 + number * 200 - rng.choice([0, 0, 500, 9_000, 7_200_000])
        reading = {
            "id": f"r{number}",
            "device": f"device-{rng.randrange(15)}",
            "site": "here",
            "at": at,
            "temperature": rng.choice([None, rng.randrange(60) / 2]),
        }
        yield b"broken %d" % number if number in invalid else json.dumps(reading).encode()


def send_records(broker: LocalBroker) -> None:
    """Send all records before a stream reads them, so that both runs have the same batches."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(generate_values(seed=7)):
        producer.produce("sensors", value, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0


def run_stream(
    master: str, broker: LocalBroker, folder: Path, jars: Path, executor_class_path: str = ""
) -> dict[str, list[Any]]:
    """Run the stream over all records; return the sorted rows of every table."""
    order = {
        "master": master,
        "bootstrap": broker.bootstrap,
        "folder": str(folder),
        "jars": str(jars),
        "executor_class_path": executor_class_path,
    }
    command = [sys.executable, "-m", "tests.platform.whole.spark_run"]
    run = subprocess.run(
        [*command, json.dumps({**order, "records": VALID_COUNT + INVALID_COUNT})],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return {name: read_rows(folder / "warehouse" / name) for name in TABLES}


def read_rows(address: Path) -> list[Any]:
    """Return the sorted rows of a table."""
    connection = duckdb.connect()
    connection.register("content", DeltaTable(address).to_pyarrow_table())
    return connection.sql("SELECT * FROM content ORDER BY ALL").fetchall()


def install_executor_jars(spark_jars: list[Path], folder: Path) -> str:
    """Copy the released jars as another machine has them; return the class path of its executors.

    The jar of the engine's own classes is not among them: it is in the code of the driver only.
    """
    folder.mkdir()
    return ":".join(str(shutil.copy(jar, folder)) for jar in spark_jars)


def check_listeners(folder: Path, master: str) -> None:
    """Check that master and worker listen on declared ports only: nothing takes programs without the secret."""
    first_port = int(master.rpartition(":")[2])
    for program, name in (("spark-master", "spark-master"), ("spark-worker", "spark-worker-1")):
        record = ProgramRecord.read(folder, name)
        assert record is not None
        assert find_undeclared("env local", program, record.pid, {"first_port": first_port - 30}) == []
        if program == "spark-master":
            ports = {socket.port for socket in read_sockets(record.pid)}
            assert ports == {first_port, first_port + 1}


def test_a_standalone_spark_writes_the_same_tables(
    own_broker: LocalBroker, jar_directory: Path, spark_jar_paths: list[Path], tmp_path: Path
) -> None:
    own_broker.create_topic("sensors", 3)
    send_records(own_broker)
    expected = run_stream("local[*]", own_broker, tmp_path / "local", jar_directory)
    with run_spark_cluster(tmp_path / "cluster", jar_directory) as master:
        check_listeners(tmp_path / "cluster", master)
        class_path = install_executor_jars(spark_jar_paths, tmp_path / "other machine's jars")
        tables = run_stream(master, own_broker, tmp_path / "standalone", jar_directory, class_path)
    assert tables == expected
    fetched = [path.parent for path in (tmp_path / "cluster").rglob(SPARK_CLASSES_JAR.name)]
    assert fetched, "the executors fetch the jar of the record parser from the driver"
    assert {name: bool(rows) for name, rows in tables.items()} == dict.fromkeys(TABLES, True)
