"""Every command of the compose file, run outside a container: names become addresses of this machine.

Nothing is replaced but names, ports and folders; what is tested is what a container would run, with its
health checks, until a row that was fed in stands in a table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from sqlalchemy import NullPool, create_engine, text
from tests.docker.compose_model import Compose, Service
from tests.platform.conftest import Postgres, postgres  # noqa: F401  a fixture is used by its name

from penstock.infra.ports import find_free_ports

pytestmark = [pytest.mark.whole, pytest.mark.timeout(420)]

ROOT = Path(__file__).parents[2]
READY_SECONDS = 150
BROKERS = ("kafka-1", "kafka-2", "kafka-3")


@dataclass
class Machine:
    """This machine in the place of the containers' network and file systems."""

    folder: Path
    jars: Path
    compose: Compose
    database: str
    dagster: str
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [f"{broker}:{port}" for broker in BROKERS for port in (9092, 9093)]
        others = ["spark-master:7077", "8080", "8081", "4000", "3000", "9464"]
        ports = dict(zip([*names, *others], map(str, find_free_ports(len(names) + len(others))), strict=True))
        self.ports = ports
        self.words = {
            **{name: f"127.0.0.1:{port}" for name, port in ports.items() if ":" in name},
            "code:4000": f"127.0.0.1:{ports['4000']}",
            "webserver:3000": f"127.0.0.1:{ports['3000']}",
            "127.0.0.1:8081": f"127.0.0.1:{ports['8081']}",
            "127.0.0.1:9464": f"127.0.0.1:{ports['9464']}",
            "postgresql://penstock@postgres:5432/penstock": self.database,
            "postgresql://penstock@postgres:5432/dagster": self.dagster,
            "/run/secrets/control_store": str(self.folder / "control_store"),
            "/opt/penstock/jars": str(self.jars),
            "/opt/penstock/dagster": str(self.folder / "dagster"),
            "/tmp/": f"{self.folder}/tmp/",
        }
        self.whole_words = {
            **{name: port for name, port in ports.items() if ":" not in name},
            "spark-master": "127.0.0.1",
            "7077": ports["spark-master:7077"],
            "0.0.0.0": "127.0.0.1",
            "code": "127.0.0.1",
            "python": sys.executable,
        }

    def here(self, text: str, service: str) -> str:
        """A word of a command or of the environment, as it is on this machine."""
        if text in self.whole_words:
            return self.whole_words[text]
        places = {**self.words, "/var/lib/penstock": str(self.volume(service))}
        names = "|".join(re.escape(name) for name in sorted(places, key=len, reverse=True))
        return re.sub(names, lambda found: places[found[0]], text)

    def volume(self, service: str) -> Path:
        mounts = self.compose.services[service].volumes
        folder = self.folder / "volumes" / (mounts[0].split(":")[0] if mounts else service)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def environment(self, name: str) -> dict[str, str]:
        service = self.compose.services[name]
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PENSTOCK_", "PG", "DAGSTER"))
        }
        services = self.compose.services  # a variable that holds a service's name means its address
        told = {
            key: "127.0.0.1" if value in services else self.here(value, name)
            for key, value in service.environment.items()
        }
        path = f"{Path(sys.executable).parent}:{kept['PATH']}"
        image = {"DAGSTER_HOME": str(self.folder / "dagster"), "DAGSTER_DISABLE_TELEMETRY": "1"}
        return {**kept, **image, **told, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONUNBUFFERED": "1"}

    def entry(self, name: str) -> list[str]:
        what, *words = self.compose.services[name].command or []
        here = [self.here(word, name) for word in words]
        return [sys.executable, "-m", "penstock.infra.container", what, *here]

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def start(self, *names: str) -> None:
        for name in names:
            with self.log(name).open("ab") as log:
                self.running[name] = subprocess.Popen(
                    self.entry(name),
                    env=self.environment(name),
                    cwd=self.folder,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def healthy(self, name: str) -> bool:
        check = self.compose.services[name].healthcheck
        assert check is not None
        command = [self.here(word, name) for word in check.test[1:]]
        done = subprocess.run(
            command, env=self.environment(name), cwd=self.folder, capture_output=True, check=False
        )
        return done.returncode == 0

    def wait_healthy(self, *names: str) -> None:
        for name in names:
            self.wait(lambda name=name: self.healthy(name), name, name)  # type: ignore[misc]

    def wait(self, true: Callable[[], object], what: str, name: str) -> None:
        """Ask half of the time at most: a question is a command, which takes time of what is waited for."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            asked = time.monotonic()
            if true():
                return
            answered = time.monotonic()
            assert self.running[name].poll() is None, f"{what}: {name} ended\n{self.end_of_log(name)}"
            assert answered < deadline, f"{what}: not in time\n{self.end_of_log(name)}"
            time.sleep(max(0.5, answered - asked))

    def end_of_log(self, name: str) -> str:
        return "\n".join(self.log(name).read_text("utf-8", "replace").splitlines()[-30:])

    def end(self) -> None:
        """End all of it as compose does: what depends on others first."""
        for names in (("feed", "host"), tuple(self.running)):
            self._end([self.running[name] for name in names if name in self.running])

    def _end(self, processes: list[subprocess.Popen[bytes]]) -> None:
        family = []
        for process in processes:
            if process.poll() is None:
                family += [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
                process.send_signal(signal.SIGTERM)
        _, left = psutil.wait_procs(family, timeout=20)
        for one in left:
            one.kill()
        psutil.wait_procs(left, timeout=10)
        for process in processes:
            process.wait(10)


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory,
    compose: Compose,
    postgres: Postgres,  # noqa: F811  the fixture that was imported above
    pytestconfig: pytest.Config,
) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("machine")
    databases = postgres.database("compose"), postgres.database("dagster")
    made = Machine(folder, pytestconfig.rootpath / ".penstock" / "jars", compose, *databases)
    (folder / "control_store").write_text("not asked for here\n")
    shutil.copytree(ROOT / "docker" / "dagster", folder / "dagster")
    instance = folder / "dagster" / "dagster.yaml"
    instance.write_text(instance.read_text().replace("/tmp/", f"{folder}/tmp/"))
    yield made
    made.end()


def test_the_brokers_form_a_cluster(machine: Machine) -> None:
    from confluent_kafka.admin import AdminClient

    machine.start(*BROKERS)
    machine.wait_healthy(*BROKERS)
    client = AdminClient({"bootstrap.servers": machine.words["kafka-1:9092"], "log_level": 0})
    machine.wait(lambda: len(client.list_topics(timeout=10).brokers) == 3, "three brokers", "kafka-1")


@pytest.mark.parametrize("name", ["topics", "streams"])
def test_what_prepares_the_rest_comes_to_its_end(machine: Machine, name: str) -> None:
    machine.start(name)
    assert machine.running[name].wait(90) == 0, machine.end_of_log(name)


def test_spark_gets_its_worker(machine: Machine) -> None:
    machine.start("spark-master")
    machine.wait_healthy("spark-master")
    machine.start("spark-worker")
    machine.wait_healthy("spark-worker")


def test_dagster_shows_its_pages(machine: Machine) -> None:
    machine.start("code")
    machine.wait_healthy("code")
    machine.start("webserver", "daemon")
    machine.wait_healthy("webserver", "daemon")


def test_what_is_fed_in_stands_in_the_tables(machine: Machine) -> None:
    machine.start("feed", "host")
    machine.wait_healthy("host")

    def rows(*table: str) -> int:
        look = [sys.executable, "-m", "penstock.platform.cli", "table", "show", *table, "--json"]
        done = subprocess.run(
            look,
            env=machine.environment("host"),
            cwd=machine.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return len(json.loads(done.stdout)) if done.returncode == 0 else 0

    machine.wait(lambda: rows("sensor_minute"), "rows of results", "host")
    machine.wait(lambda: rows("sensors", "--kind", "raw"), "rows of the archive", "host")


def test_a_run_of_dagster_starts_spark_where_the_code_server_is(machine: Machine) -> None:
    """A backfill, launched as a person would, queued by the daemon, run by the code server on the host's image."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    launch = ["dagster", "job", "launch", "-w", str(machine.folder / "dagster" / "workspace.yaml")]
    what = ["-j", "backfill_sensor_minute", "--tags", json.dumps({"dagster/partition": yesterday})]
    launched = subprocess.run(
        [*launch, *what],
        env=machine.environment("code"),
        cwd=machine.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert launched.returncode == 0, launched.stderr

    store = create_engine(machine.dagster.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    asked = text("SELECT status FROM runs WHERE pipeline_name = 'backfill_sensor_minute'")

    def ended() -> str | None:
        with store.connect() as connection:
            (status,) = connection.execute(asked).scalars()
        return str(status) if status in ("SUCCESS", "FAILURE") else None

    machine.wait(ended, "the end of the run", "code")
    assert ended() == "SUCCESS", machine.end_of_log("code")


def test_every_command_was_run(machine: Machine) -> None:
    ours: dict[str, Service] = {name: one for name, one in machine.compose.services.items() if one.command}
    assert machine.running.keys() == ours.keys()
    still = {name for name, process in machine.running.items() if process.poll() is None}
    assert still == ours.keys() - {"topics", "streams"}
