"""A whole stack with its own folder and ports, used through the command line."""

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
from tests.patience import PATIENCE_S

import penstock.pipelines
from penstock.infra.errors import ProcessManagerError
from penstock.infra.ports import find_free_ports
from penstock.infra.processes import ProcessManager
from penstock.platform.control import open_control_store

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
CODE = Path(penstock.pipelines.__file__).parents[1]

Result = TypeVar("Result")
PORTS = (
    "KAFKA__PORT",
    "KAFKA__CONTROLLER_PORT",
    "HOST__METRICS_PORT",
    "CONSOLE__PORT",
    "DAGSTER__PORT",
    "DAGSTER__CODE_PORT",
)


@dataclass
class ScratchStack:
    """A platform in its own folder, on free ports."""

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
        """The catalog of a stack with its own copy of the pipelines."""
        return self.home.parent / "code" / "penstock" / "pipelines" / "catalog"

    def copy_pipelines(self) -> None:
        """Let the stack use a copy of the pipelines' code; call it before the start."""
        copy = self.catalog.parents[1]
        shutil.copytree(CODE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        self.add_import_folder(copy.parent)

    def add_import_folder(self, folder: Path) -> None:
        """Let every process of the stack import from a folder first; call it before the start."""
        folders = [str(folder), self.environment.get("PYTHONPATH", "")]
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))

    @property
    def bootstrap(self) -> str:
        """The address of the broker."""
        return f"127.0.0.1:{self.ports['KAFKA__PORT']}"

    @property
    def client(self) -> dict[str, str]:
        """The configuration of a Kafka client."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def warehouse(self) -> Path:
        """The folder of the tables."""
        return self.home / "warehouse"

    @property
    def control_url(self) -> str:
        """The URL of the control store."""
        return f"sqlite:///{self.home}/control.db"

    @property
    def ui(self) -> str:
        """The URL of Dagster's webserver."""
        return f"http://127.0.0.1:{self.ports['DAGSTER__PORT']}"

    @property
    def console(self) -> str:
        """The URL of the web console."""
        return f"http://127.0.0.1:{self.ports['CONSOLE__PORT']}"

    def run(self, *arguments: str, seconds: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run the penstock command; return its output and exit code."""
        return subprocess.run(
            [PENSTOCK, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def run_checked(self, *arguments: str, seconds: float = PATIENCE_S) -> str:
        """Run the penstock command and return its output; fail with both outputs if it fails."""
        result = self.run(*arguments, seconds=seconds)
        assert result.returncode == 0, (
            f"penstock {arguments} ended with {result.returncode}: {result.stderr}{result.stdout}"
        )
        return result.stdout

    def up(self) -> None:
        """Start everything."""
        self.run_checked("up", seconds=PATIENCE_S)

    def down(self) -> None:
        """Stop everything."""
        self.run_checked("down")

    def status(self) -> dict[str, Any]:
        """Return `penstock status --json`, for any exit code."""
        output = self.run("status", "--json").stdout
        # Nothing is printed while a killed manager does not answer.
        answer: dict[str, Any] = json.loads(output or '{"healthy": false, "programs": [], "streams": []}')
        return answer

    def table(self, kind: str, name: str) -> pa.Table:
        """Read a Delta table."""
        return DeltaTable(self.warehouse / kind / name).to_pyarrow_table()

    def records(self, topic: str) -> list[tuple[int, int, bytes, bytes]]:
        """Read every record of a topic: partition, offset, key, value."""
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
        """Read the values of all records of a topic."""
        return [value for _, _, _, value in self.records(topic)]

    def pids(self) -> dict[str, int]:
        """Return the process ids of the programs and the manager."""
        try:
            return ProcessManager(self.home / "run", self.home / "logs").list_pids()
        except ProcessManagerError:
            return {}

    def ready(self) -> bool:
        """Whether everything runs as requested."""
        return bool(self.status()["healthy"])

    def batch(self, stream: str = "sensor_minute") -> int:
        """Return the newest batch of a stream; -1 before the first."""
        store = open_control_store(self.control_url)
        try:
            last = store.read_last_batch(stream)
        finally:
            store.close()
        return last.batch_id if last else -1

    def state(self, stream: str = "sensor_minute") -> str:
        """Return the state of a stream in `penstock status`."""
        return next((str(one["state"]) for one in self.status()["streams"] if one["stream"] == stream), "")

    def launch(self, job: str, seconds: float = PATIENCE_S, **config: object) -> None:
        """Launch a job as in the README, and wait until its run succeeds."""
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
        result = subprocess.run(
            [str(Path(PENSTOCK).with_name("dagster")), "job", "launch", *options],
            env={**self.environment, "DAGSTER_HOME": home},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        run_status = poll_until(lambda: self._read_final_status(run), seconds, f"run {run} of {job} to end")
        assert run_status == "SUCCESS", f"{job} ended with {run_status}: {self.ui}/runs/{run}"

    def materialized(self, *asset: str) -> int:
        """Return the time of the last materialization of an asset in ms; 0 if there is none."""
        query = "query($path: [String!]!) {assetOrError(assetKey: {path: $path}) {... on Asset {%s}}}"
        data = self._query_dagster(query % "assetMaterializations(limit: 1) {timestamp}", path=list(asset))
        materializations = data["assetOrError"].get("assetMaterializations", [])
        return int(materializations[0]["timestamp"]) if materializations else 0

    def _read_final_status(self, run: str) -> str | None:
        query = "query($id: ID!) {runOrError(runId: $id) {... on Run {status}}}"
        status = self._query_dagster(query, id=run)["runOrError"]["status"]
        return str(status) if status in ("SUCCESS", "FAILURE", "CANCELED") else None

    def _query_dagster(self, query: str, **variables: object) -> Any:
        """Send a GraphQL query to Dagster."""
        started_at = json.dumps({"query": query, "variables": variables}).encode()
        http_request = urllib.request.Request(
            f"{self.ui}/graphql", started_at, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(http_request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    @contextmanager
    def without_feed(self) -> Iterator[None]:
        """Stop the feed inside of the context."""
        self.environment["PENSTOCK_FEED__ENABLED"] = "false"
        try:
            self.up()
            yield
        finally:
            del self.environment["PENSTOCK_FEED__ENABLED"]
        self.up()

    @contextmanager
    def stopped_on_exit(self) -> Iterator[None]:
        """Stop the stack at the end of the context, also after errors."""
        try:
            yield
        except BaseException:
            print(self.run("logs", "-n", "60").stdout)
            raise
        finally:
            self.down()


def _read_to_the_end(consumer: Consumer, topic: str) -> list[tuple[int, int, bytes, bytes]]:
    partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    messages, open_partitions = [], set(partitions)
    while open_partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{topic} did not answer for {PATIENCE_S:g} s"
        if error := message.error():
            assert error.code() == KafkaError._PARTITION_EOF, error
            open_partitions.discard(message.partition())
        else:
            messages.append((message.partition(), message.offset(), message.key(), message.value()))
    return sorted(messages)


def poll_until(condition: Callable[[], Result], seconds: float, description: str) -> Result:
    """Poll until the result is true, and return it; fail after the given time.

    It polls half of the time at most: some conditions are commands that compete for the processor.
    """
    deadline = time.monotonic() + seconds
    while True:
        started_at = time.monotonic()
        if value := condition():
            return value
        finished_at = time.monotonic()
        assert finished_at < deadline, f"timed out after {seconds:g} s waiting for {description}"
        time.sleep(max(0.2, finished_at - started_at))
