"""Every command of the compose file, run without containers.

Only names, ports and folders are replaced by those of this machine. The commands run with their health checks
until tables have rows of the feed.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from sqlalchemy import NullPool, create_engine, make_url, text
from tests.docker.compose_model import Compose, Service
from tests.patience import PATIENCE_S
from tests.platform.conftest import Postgres, postgres  # noqa: F401  a fixture is used by its name
from tests.platform.security.declared_listeners import read_sockets

from penstock.infra.ports import find_free_ports
from penstock.platform.security.listeners import list_listeners
from penstock.platform.security.open_sockets import find_listener

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
READY_TIMEOUT_S = 150
BROKERS = ("kafka-1", "kafka-2", "kafka-3")


@dataclass
class ContainerlessStack:
    """This machine in place of the network and file systems of the containers."""

    folder: Path
    jars: Path
    compose: Compose
    database: str
    dagster: str
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [f"{broker}:{port}" for broker in BROKERS for port in (9092, 9093)]
        other_names = ["spark-master:7077", "8080", "8081", "4000", "3000", "9464"]
        ports = dict(
            zip([*names, *other_names], map(str, find_free_ports(len(names) + len(other_names))), strict=True)
        )
        self.ports = ports
        self.replacements = {
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
            "/var/lib/dagster": str(self.folder / "volumes" / "dagster"),
            "/tmp/": f"{self.folder}/tmp/",
        }
        self.whole_replacements = {
            **{name: port for name, port in ports.items() if ":" not in name},
            "spark-master": "127.0.0.1",
            "7077": ports["spark-master:7077"],
            "0.0.0.0": "127.0.0.1",
            "code": "127.0.0.1",
            "python": sys.executable,
        }

    def localize(self, text: str, service: str) -> str:
        """Replace names, ports and folders of containers by those of this machine."""
        if text in self.whole_replacements:
            return self.whole_replacements[text]
        local_names = {**self.replacements, "/var/lib/penstock": str(self.volume(service))}
        names = "|".join(re.escape(name) for name in sorted(local_names, key=len, reverse=True))
        return re.sub(names, lambda match: local_names[match[0]], text)

    def volume(self, service: str) -> Path:
        mounts = self.compose.services[service].volumes
        folder = self.folder / "volumes" / (mounts[0].split(":")[0] if mounts else service)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def environment(self, name: str) -> dict[str, str]:
        service = self.compose.services[name]
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PENSTOCK_", "PG", "DAGSTER"))
        }
        services = self.compose.services  # the name of a service stands for its address
        variables = {
            key: "127.0.0.1" if value in services else self.localize(value, name)
            for key, value in service.environment.items()
        }
        path = f"{Path(sys.executable).parent}:{inherited['PATH']}"
        image = {"DAGSTER_HOME": str(self.folder / "dagster"), "DAGSTER_DISABLE_TELEMETRY": "1"}
        return {
            **inherited,
            **image,
            **variables,
            "PATH": path,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONUNBUFFERED": "1",
        }

    def entry(self, name: str) -> list[str]:
        program, *arguments = self.compose.services[name].command or []
        localized = [self.localize(word, name) for word in arguments]
        return [sys.executable, "-m", "penstock.infra.container", program, *localized]

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
        command = [self.localize(word, name) for word in check.test[1:]]
        result = subprocess.run(
            command, env=self.environment(name), cwd=self.folder, capture_output=True, check=False
        )
        return result.returncode == 0

    def wait_healthy(self, *names: str) -> None:
        for name in names:
            self.wait(lambda name=name: self.healthy(name), name, name)  # type: ignore[misc]

    def wait(self, condition: Callable[[], object], description: str, name: str) -> None:
        """Wait for a condition; poll half of the time at most, as conditions are commands."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            started_at = time.monotonic()
            if condition():
                return
            finished_at = time.monotonic()
            assert self.running[name].poll() is None, (
                f"{description}: {name} ended\n{self.read_log_tail(name)}"
            )
            assert finished_at < deadline, f"{description}: not in time\n{self.read_log_tail(name)}"
            time.sleep(max(0.5, finished_at - started_at))

    def read_log_tail(self, name: str) -> str:
        return "\n".join(self.log(name).read_text("utf-8", "replace").splitlines()[-30:])

    def stop_all(self) -> None:
        """Stop all services as compose does: dependent ones first."""
        for names in (("feed", "host"), tuple(self.running)):
            self._stop([self.running[name] for name in names if name in self.running])

    def _stop(self, processes: list[subprocess.Popen[bytes]]) -> None:
        processes_to_stop = []
        for process in processes:
            if process.poll() is None:
                processes_to_stop += [
                    psutil.Process(process.pid),
                    *psutil.Process(process.pid).children(recursive=True),
                ]
                process.send_signal(signal.SIGTERM)
        _, remaining = psutil.wait_procs(processes_to_stop, timeout=20)
        for process in remaining:
            process.kill()
        psutil.wait_procs(remaining, timeout=10)
        for process in processes:
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory,
    compose: Compose,
    postgres: Postgres,  # noqa: F811  the fixture that was imported above
    pytestconfig: pytest.Config,
) -> Iterator[ContainerlessStack]:
    folder = tmp_path_factory.mktemp("machine")
    databases = (
        postgres.database_with_password("compose", "keeper"),
        postgres.database_with_password("dagster", "keeper"),
    )
    password = secrets.token_hex()
    postgres.set_password("keeper", password)
    stack = ContainerlessStack(folder, pytestconfig.rootpath / ".penstock" / "jars", compose, *databases)
    (folder / "control_store").write_text(f"{password}\n")
    shutil.copytree(ROOT / "docker" / "dagster", folder / "dagster")
    instance = folder / "dagster" / "dagster.yaml"
    instance.write_text(instance.read_text().replace("/tmp/", f"{folder}/tmp/"))
    yield stack
    stack.stop_all()


def test_the_brokers_form_a_cluster(machine: ContainerlessStack) -> None:
    from confluent_kafka.admin import AdminClient

    machine.start(*BROKERS)
    machine.wait_healthy(*BROKERS)
    client = AdminClient({"bootstrap.servers": machine.replacements["kafka-1:9092"], "log_level": 0})
    machine.wait(lambda: len(client.list_topics(timeout=PATIENCE_S).brokers) == 3, "three brokers", "kafka-1")


@pytest.mark.parametrize("name", ["topics", "streams"])
def test_setup_commands_succeed(machine: ContainerlessStack, name: str) -> None:
    machine.start(name)
    assert machine.running[name].wait(PATIENCE_S) == 0, machine.read_log_tail(name)


def test_the_spark_worker_joins_the_master(machine: ContainerlessStack) -> None:
    machine.start("spark-master")
    machine.wait_healthy("spark-master")
    machine.start("spark-worker")
    machine.wait_healthy("spark-worker")


def test_dagster_programs_become_healthy(machine: ContainerlessStack) -> None:
    machine.start("code")
    machine.wait_healthy("code")
    machine.start("webserver", "daemon")
    machine.wait_healthy("webserver", "daemon")


def test_fed_records_are_in_the_tables(machine: ContainerlessStack) -> None:
    machine.start("feed", "host")
    machine.wait_healthy("host")

    def rows(*table: str) -> int:
        command = [sys.executable, "-m", "penstock.platform.cli", "table", "show", *table, "--json"]
        result = subprocess.run(
            command,
            env=machine.environment("host"),
            cwd=machine.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return len(json.loads(result.stdout)) if result.returncode == 0 else 0

    machine.wait(lambda: rows("sensor_minute"), "rows of results", "host")
    machine.wait(lambda: rows("sensors", "--kind", "raw"), "rows of the archive", "host")


def test_every_listening_port_is_declared(machine: ContainerlessStack) -> None:
    """Compare the sockets of each service with the table, by the ports that the containers have."""
    container_ports = {int(port): int(name.rpartition(":")[2]) for name, port in machine.ports.items()}
    undeclared = {}
    for name, process in machine.running.items():
        if process.poll() is None:
            listeners = list_listeners("docker", re.sub(r"-\d+$", "", name))
            sockets = {
                replace(socket, port=container_ports.get(socket.port, socket.port))
                for socket in read_sockets(process.pid)
            }
            undeclared[name] = {one for one in sockets if find_listener(one, listeners, {}) is None}
    assert len(undeclared) == 10
    assert {name: sockets for name, sockets in undeclared.items() if sockets} == {}


def test_a_dagster_run_starts_spark_at_the_code_server(machine: ContainerlessStack) -> None:
    """Launch a backfill, which the daemon queues and the code server runs."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    password_file = str(machine.folder / "control_store")
    with_password = [sys.executable, "-m", "penstock.infra.container", "with-password", password_file]
    launch = [
        *with_password,
        "dagster",
        "job",
        "launch",
        "-w",
        str(machine.folder / "dagster" / "workspace.yaml"),
    ]
    options = ["-j", "backfill_sensor_minute", "--tags", json.dumps({"dagster/partition": yesterday})]
    launched = subprocess.run(
        [*launch, *options],
        env=machine.environment("code"),
        cwd=machine.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert launched.returncode == 0, launched.stderr

    url = make_url(machine.dagster).set(
        drivername="postgresql+psycopg", password=(machine.folder / "control_store").read_text().strip()
    )
    store = create_engine(url, poolclass=NullPool)
    started_at = text("SELECT status FROM runs WHERE pipeline_name = 'backfill_sensor_minute'")

    def read_final_status() -> str | None:
        with store.connect() as connection:
            (status,) = connection.execute(started_at).scalars()
        return str(status) if status in ("SUCCESS", "FAILURE") else None

    machine.wait(read_final_status, "the end of the run", "code")
    assert read_final_status() == "SUCCESS", machine.read_log_tail("code")


def test_every_command_was_run(machine: ContainerlessStack) -> None:
    services: dict[str, Service] = {
        name: service for name, service in machine.compose.services.items() if service.command
    }
    assert machine.running.keys() == services.keys()
    running = {name for name, process in machine.running.items() if process.poll() is None}
    assert running == services.keys() - {"topics", "streams"}
