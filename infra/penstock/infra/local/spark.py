"""Spark's master and workers of the local environment, out of the wheel that pyspark is."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.infra.local.errors import LocalEnvironmentError, ProgramFailedError
from penstock.infra.local.orders import MasterOrder, SparkOrder, WorkerOrder
from penstock.infra.local.private import secret_in, write_private
from penstock.infra.local.programs import Program, Record, last_lines, runs, start, stop
from penstock.infra.ports import LOCALHOST, answers, require_free
from penstock.infra.waiting import wait_until

START_SECONDS = 60.0
STOP_SECONDS = 15.0
DAEMON_MEMORY = "512m"
SECRET = "secret"  # noqa: S105  the name of the file that holds it
_MASTER_PAGES = 1
_WORKERS_FROM = 10
_WORKER_PAGES_FROM = 20


def start_master(order: MasterOrder) -> None:
    """Have the master running, and return once it answers."""
    _have(master_program(order.spark), order.token, _master_ports(order.spark), "", order.spark.secured)
    program = master_program(order.spark)
    _wait(program, lambda: _state(order.spark) is not None, "Spark's master to answer")


def start_worker(order: WorkerOrder) -> None:
    """Have one worker running as ordered, and return once the master has it. Otherwise it is restarted."""
    program = worker_program(order)
    _have(program, order.token, _worker_ports(order), _settings(program), order.spark.secured)
    wanted = (order.cores, order.memory_mb)
    _wait(
        program,
        lambda: _workers(order.spark).get(_worker_ports(order)[0]) == wanted,
        f"worker {order.number} to be known to the master with {order.cores} cores and {order.memory_mb} MB",
    )


def master_url(order: SparkOrder) -> str:
    """What a session connects to."""
    return f"spark://{LOCALHOST}:{order.first_port}"


def master_program(order: SparkOrder) -> Program:
    """Decide how the master runs."""
    properties = order.path / "master.properties"
    port, pages = _master_ports(order)
    arguments = ("--host", LOCALHOST, "--port", str(port), "--webui-port", str(pages))
    return Program(
        name="spark-master",
        command=(
            *_class("org.apache.spark.deploy.master.Master"),
            *arguments,
            "--properties-file",
            str(properties),
        ),
        marker=str(properties),
        directory=order.path,
        environment=_environment(order),
        stop_seconds=STOP_SECONDS,
    )


def worker_program(order: WorkerOrder) -> Program:
    """Decide how a worker runs."""
    work = order.spark.path / f"worker-{order.number}"
    port, pages = _worker_ports(order)
    size = ("--cores", str(order.cores), "--memory", f"{order.memory_mb}m")
    where = ("--host", LOCALHOST, "--port", str(port), "--webui-port", str(pages), "--work-dir", str(work))
    return Program(
        name=f"spark-worker-{order.number}",
        command=(
            *_class("org.apache.spark.deploy.worker.Worker"),
            *size,
            *where,
            "--properties-file",
            str(order.spark.path / "worker.properties"),
            master_url(order.spark),
        ),
        marker=str(work),
        directory=order.spark.path,
        environment=_environment(order.spark),
        stop_seconds=STOP_SECONDS,
    )


def _properties(directory: Path, secured: bool) -> str:
    """What master and workers are told in a file; with security, a secret that jobs must know, too."""
    told = ["spark.ui.killEnabled false"]
    if secured:
        told += ["spark.authenticate true", f"spark.authenticate.secret {secret_in(directory / SECRET)}"]
        told += ["spark.network.crypto.enabled true"]
    return "\n".join([*told, ""])


def _have(program: Program, token: str, ports: tuple[int, ...], settings: str, secured: bool) -> None:
    record = Record.read(program.directory, program.name)
    if record is not None and record.process is not None and record.settings == settings:
        Record(record.pid, record.marker, token, settings).write(program.directory, program.name)
        return
    stop(program.directory, program.name, program.stop_seconds)
    for port in ports:
        require_free(LOCALHOST, port, program.name)
    program.directory.mkdir(parents=True, exist_ok=True)
    for properties in ("master.properties", "worker.properties"):
        write_private(program.directory / properties, _properties(program.directory, secured))
    start(program, token, settings)


def _wait(program: Program, works: Any, what: str) -> None:
    def ready() -> bool:
        if not runs(program.directory, program.name):
            raise ProgramFailedError(
                f"{program.name} ended while it was started. The end of {program.log}:\n{last_lines(program)}"
            )
        return bool(works())

    wait_until(ready, START_SECONDS, f"{what}; see {program.log}")


def _workers(order: SparkOrder) -> Mapping[int, tuple[int, int]]:
    """The live workers, by port: their cores and memory."""
    state = _state(order) or {"workers": []}
    return {one["port"]: (one["cores"], one["memory"]) for one in state["workers"] if one["state"] == "ALIVE"}


def _state(order: SparkOrder) -> Any:
    """What the master says of itself; None when it does not answer."""
    port = _master_ports(order)[1]
    if not answers(LOCALHOST, port):
        return None
    with closing(http.client.HTTPConnection(LOCALHOST, port, timeout=3)) as connection:
        try:
            connection.request("GET", "/json/")
            return json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return None


def _class(name: str) -> tuple[str, str]:
    return str(spark_home() / "bin" / "spark-class"), name


def spark_home() -> Path:
    """Where the pyspark package is; nothing of it is imported."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise LocalEnvironmentError("pyspark is not installed; install the project's locked requirements.")
    return Path(found.submodule_search_locations[0])


def _environment(order: SparkOrder) -> dict[str, str]:
    jars = ensure_jars(Path(order.jars), ["spark"])
    return {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
        "SPARK_DAEMON_CLASSPATH": ":".join(map(str, jars)),
        "SPARK_LOCAL_IP": LOCALHOST,
        "SPARK_CONF_DIR": str(order.path / "conf"),
    }


def _settings(program: Program) -> str:
    return hashlib.sha256("\0".join(program.command).encode()).hexdigest()


def _master_ports(order: SparkOrder) -> tuple[int, int]:
    return order.first_port, order.first_port + _MASTER_PAGES


def _worker_ports(order: WorkerOrder) -> tuple[int, int]:
    first = order.spark.first_port
    return first + _WORKERS_FROM + order.number, first + _WORKER_PAGES_FROM + order.number
