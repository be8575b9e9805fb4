"""A whole stack of a test's own: folder, ports and command line, as a person would use them."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition
from deltalake import DeltaTable

import penstock.pipelines
from penstock.infra.errors import ProcessManagerError
from penstock.infra.ports import find_free_ports
from penstock.infra.processes import ProcessManager
from penstock.platform.control import open_control_store

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
UP_SECONDS = 240.0
PATIENCE_SECONDS = 60.0
CODE = Path(penstock.pipelines.__file__).parents[1]

Found = TypeVar("Found")
PORTS = ("KAFKA__PORT", "KAFKA__CONTROLLER_PORT", "HOST__METRICS_PORT", "DAGSTER__PORT", "DAGSTER__CODE_PORT")


@dataclass
class ScratchStack:
    """The platform in a folder of its own, on ports that were free."""

    home: Path
    jars: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ports = dict(zip(PORTS, find_free_ports(len(PORTS)), strict=True))
        self.ports = ports
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            "PENSTOCK_HOME": str(self.home),
            "PENSTOCK_JARS": str(self.jars),
            "PENSTOCK_DAGSTER__REPORT_INTERVAL": "2s",
            **{f"PENSTOCK_{name}": str(port) for name, port in ports.items()},
            **self.variables,
        }

    @property
    def catalog(self) -> Path:
        """The pipelines of a stack that has its own: a test may change them, and no other sees it."""
        return self.home.parent / "code" / "penstock" / "pipelines" / "catalog"

    def with_pipelines_of_its_own(self) -> None:
        """Have everything of the stack run a copy of the pipelines' code; call it before the start."""
        copy = self.catalog.parents[1]
        shutil.copytree(CODE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        self.environment["PYTHONPATH"] = str(copy.parent)

    @property
    def bootstrap(self) -> str:
        """Where the broker listens."""
        return f"127.0.0.1:{self.ports['KAFKA__PORT']}"

    @property
    def client(self) -> dict[str, str]:
        """What a client that reads topics is made with."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def warehouse(self) -> Path:
        """Where the tables are."""
        return self.home / "warehouse"

    @property
    def control_url(self) -> str:
        """Where the control store is."""
        return f"sqlite:///{self.home}/control.db"

    @property
    def ui(self) -> str:
        """Where Dagster's webserver listens."""
        return f"http://127.0.0.1:{self.ports['DAGSTER__PORT']}"

    def run(self, *arguments: str, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run the penstock command, and return what it said and ended with."""
        return subprocess.run(
            [PENSTOCK, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def must(self, *arguments: str, seconds: float = 60.0) -> str:
        """Run the penstock command and return its output; what it said is in the failure."""
        done = self.run(*arguments, seconds=seconds)
        assert done.returncode == 0, (
            f"penstock {arguments} ended with {done.returncode}: {done.stderr}{done.stdout}"
        )
        return done.stdout

    def up(self) -> None:
        """Start everything."""
        self.must("up", seconds=UP_SECONDS)

    def down(self) -> None:
        """Stop everything."""
        self.must("down")

    def status(self) -> dict[str, Any]:
        """What `penstock status --json` says, whatever it ends with."""
        said = self.run("status", "--json").stdout
        # Nothing is printed while the manager, just killed, does not answer.
        answer: dict[str, Any] = json.loads(said or '{"healthy": false, "programs": [], "streams": []}')
        return answer

    def table(self, kind: str, name: str) -> pa.Table:
        """A Delta table as any other reader sees it."""
        return DeltaTable(self.warehouse / kind / name).to_pyarrow_table()

    def records(self, topic: str) -> list[tuple[int, int, bytes, bytes]]:
        """Every record of a topic, as a plain consumer gets it: partition, offset, key, value."""
        consumer = Consumer(
            {
                **self.client,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            return _read_to_the_end(consumer, topic)
        finally:
            consumer.close()

    def values(self, topic: str = "sensors") -> list[bytes]:
        """The values of every record of a topic."""
        return [value for _, _, _, value in self.records(topic)]

    def pids(self) -> dict[str, int]:
        """The process of every program, and of the manager."""
        try:
            return ProcessManager(self.home / "run", self.home / "logs").list_pids()
        except ProcessManagerError:
            return {}

    def ready(self) -> bool:
        """Whether everything that should run does."""
        return bool(self.status()["healthy"])

    def batch(self, stream: str = "sensor_minute") -> int:
        """The newest batch of a stream; -1 before the first."""
        store = open_control_store(self.control_url)
        try:
            last = store.read_last_batch(stream)
        finally:
            store.close()
        return last.batch_id if last else -1

    def state(self, stream: str = "sensor_minute") -> str:
        """How a stream is doing, as `penstock status` says."""
        return next((str(one["state"]) for one in self.status()["streams"] if one["stream"] == stream), "")

    def launch(self, job: str, seconds: float = 120.0, **config: object) -> None:
        """Launch a job as the README says, and wait until its run has succeeded."""
        home, run = str(self.home / "dagster"), str(uuid4())
        options = [
            "-w",
            f"{home}/workspace.yaml",
            "-j",
            job,
            "--config-json",
            json.dumps(config),
            "--run-id",
            run,
        ]
        done = subprocess.run(
            [str(Path(PENSTOCK).with_name("dagster")), "job", "launch", *options],
            env={**self.environment, "DAGSTER_HOME": home},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        ended = until(lambda: self._ended(run), seconds, f"run {run} of {job} to end")
        assert ended == "SUCCESS", f"{job} ended with {ended}: {self.ui}/runs/{run}"

    def materialized(self, *asset: str) -> int:
        """When an asset was last materialized, in milliseconds; 0 where it never was."""
        query = "query($path: [String!]!) {assetOrError(assetKey: {path: $path}) {... on Asset {%s}}}"
        told = self._asked(query % "assetMaterializations(limit: 1) {timestamp}", path=list(asset))
        found = told["assetOrError"].get("assetMaterializations", [])
        return int(found[0]["timestamp"]) if found else 0

    def _ended(self, run: str) -> str | None:
        query = "query($id: ID!) {runOrError(runId: $id) {... on Run {status}}}"
        status = self._asked(query, id=run)["runOrError"]["status"]
        return str(status) if status in ("SUCCESS", "FAILURE", "CANCELED") else None

    def _asked(self, query: str, **variables: object) -> Any:
        """What Dagster answers to a question in GraphQL."""
        asked = json.dumps({"query": query, "variables": variables}).encode()
        wanted = urllib.request.Request(f"{self.ui}/graphql", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(wanted, timeout=30) as answer:
            return json.load(answer)["data"]

    @contextmanager
    def without_feed(self) -> Iterator[None]:
        """Stop the feed, and only the feed, for a while: whoever looks next wants records to flow."""
        self.environment["PENSTOCK_FEED__ENABLED"] = "false"
        try:
            self.up()
            yield
        finally:
            del self.environment["PENSTOCK_FEED__ENABLED"]
        self.up()

    @contextmanager
    def ended_at_last(self) -> Iterator[None]:
        """Whatever happens inside, nothing of the stack runs afterwards."""
        try:
            yield
        except BaseException:
            print(self.run("logs", "-n", "60").stdout)
            raise
        finally:
            self.down()


def _read_to_the_end(consumer: Consumer, topic: str) -> list[tuple[int, int, bytes, bytes]]:
    partitions = consumer.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found, open_partitions = [], set(partitions)
    while open_partitions:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, f"{topic} did not answer for {PATIENCE_SECONDS:g} s"
        if error := message.error():
            assert error.code() == KafkaError._PARTITION_EOF, error
            open_partitions.discard(message.partition())
        else:
            found.append((message.partition(), message.offset(), message.key(), message.value()))
    return sorted(found)


def until(see: Callable[[], Found], seconds: float, what: str) -> Found:
    """Ask until the answer is true, and return it; fails after so many seconds.

    Asks half of the time at most: some questions are commands, which take the processor from what is waited for.
    """
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if found := see():
            return found
        answered = time.monotonic()
        assert answered < deadline, f"waited {seconds:g} s for {what}, in vain"
        time.sleep(max(0.2, answered - asked))
