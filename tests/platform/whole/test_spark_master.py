"""A stream on a standalone Spark writes what it writes on `local[*]`: every table, every row."""

import json
import random
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
from tests.platform.whole.one_run import CLOCK, STREAM

from penstock.infra.local.action_requests import MasterRequest, SparkClusterRequest, WorkerRequest
from penstock.infra.local.detached_programs import stop_program
from penstock.infra.local.spark_cluster import STOP_TIMEOUT_S, master_url, start_master, start_worker
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

GOOD, BROKEN = 3_500, 25
TABLES = [f"panes/{STREAM}", f"latest/{STREAM}", f"late/{STREAM}", f"ledger/{STREAM}", "quarantine/sensors"]


@contextmanager
def standalone(folder: Path, jars: Path, workers: int = 1, cores: int = 2) -> Iterator[str]:
    """A master and its workers, as the environment `local` starts them; yields the master's address."""
    spark = SparkClusterRequest(str(folder), block_of_ports(), str(jars))
    try:
        start_master(MasterRequest(spark, "a start"))
        for number in range(1, workers + 1):
            start_worker(WorkerRequest(spark, number, cores, 1024, "a start"))
        yield master_url(spark)
    finally:
        for name in (*(f"spark-worker-{number}" for number in range(1, workers + 1)), "spark-master"):
            stop_program(folder, name, STOP_TIMEOUT_S)


def block_of_ports() -> int:
    """The first of thirty ports that nobody has: a master's and its workers' follow each other."""
    return find_free_ports(30, consecutive=True)[0]


def values(seed: int) -> Iterator[bytes]:
    """Readings of some minutes, some of them too late, and records that are none. Halves add up exactly."""
    chance = random.Random(seed)
    broken = set(chance.sample(range(GOOD + BROKEN), BROKEN))
    for number in range(GOOD + BROKEN):
        at = CLOCK - 20 * 60_000 + number * 200 - chance.choice([0, 0, 500, 9_000, 7_200_000])
        reading = {
            "id": f"r{number}",
            "device": f"device-{chance.randrange(15)}",
            "site": "here",
            "at": at,
            "temperature": chance.choice([None, chance.randrange(60) / 2]),
        }
        yield b"broken %d" % number if number in broken else json.dumps(reading).encode()


def feed(broker: LocalBroker) -> None:
    """Have all records in the topic before anybody reads, so that batches are cut alike."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values(seed=7)):
        producer.produce("sensors", value, partition=number % 3)
    assert producer.flush(30) == 0


def tables_of_a_run(master: str, broker: LocalBroker, folder: Path, jars: Path) -> dict[str, list[Any]]:
    """Run the stream over all records there, and return every row of every table, in an order of its own."""
    order = {"master": master, "bootstrap": broker.bootstrap, "folder": str(folder), "jars": str(jars)}
    words = [sys.executable, "-m", "tests.platform.whole.one_run"]
    run = subprocess.run(
        [*words, json.dumps({**order, "records": GOOD + BROKEN})],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return {name: rows_of(folder / "warehouse" / name) for name in TABLES}


def rows_of(address: Path) -> list[Any]:
    """Every row of a table, each with all its columns, in an order of their own."""
    connection = duckdb.connect()
    connection.register("content", DeltaTable(address).to_pyarrow_table())
    return connection.sql("SELECT * FROM content ORDER BY ALL").fetchall()


def test_a_standalone_spark_writes_what_local_writes(
    own_broker: LocalBroker, jar_directory: Path, spark_jar_paths: list[Path], tmp_path: Path
) -> None:
    own_broker.create_topic("sensors", 3)
    feed(own_broker)
    expected = tables_of_a_run("local[*]", own_broker, tmp_path / "local", jar_directory)
    with standalone(tmp_path / "cluster", jar_directory) as master:
        found = tables_of_a_run(master, own_broker, tmp_path / "standalone", jar_directory)
    assert found == expected
    assert {name: bool(rows) for name, rows in found.items()} == dict.fromkeys(TABLES, True)
