"""The Spark master and workers of the local environment, run from the pyspark wheel."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.core.files import read_tail
from penstock.core.waiting import wait_until
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.infra.local.action_requests import MasterRequest, SparkClusterRequest, WorkerRequest
from penstock.infra.local.detached_programs import (
    DetachedProgram,
    ProgramRecord,
    is_program_running,
    start_program,
    stop_program,
)
from penstock.infra.local.errors import LocalEnvironmentError, ProgramFailedError
from penstock.infra.local.private_files import read_or_create_secret, write_private_file
from penstock.infra.ports import LOCALHOST, accepts_connections, require_free_port
from penstock.infra.spark_daemons import MASTER_PROPERTIES

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
DAEMON_MEMORY = "512m"
SECRET_FILE_NAME = "secret"  # noqa: S105  the name of the file that holds it
_MASTER_UI_PORT_OFFSET = 1
_WORKER_PORT_OFFSET = 10
_WORKER_UI_PORT_OFFSET = 20


def start_master(request: MasterRequest) -> None:
    """Start the master if needed, and return when it answers."""
    program = master_program(request.spark)
    _ensure_running(
        program,
        request.token,
        _master_ports(request.spark),
        _settings_digest(program),
        request.spark.secured,
    )
    _wait_until_ready(
        program, lambda: _read_master_state(request.spark) is not None, "Spark's master to answer"
    )


def start_worker(request: WorkerRequest) -> None:
    """Start or restart one worker if needed, and return when it is registered with the master."""
    program = worker_program(request)
    _ensure_running(
        program, request.token, _worker_ports(request), _settings_digest(program), request.spark.secured
    )
    expected_resources = (request.cores, request.memory_mb)
    _wait_until_ready(
        program,
        lambda: _list_live_workers(request.spark).get(_worker_ports(request)[0]) == expected_resources,
        f"worker {request.number} to be known to the master with {request.cores} cores and {request.memory_mb} MB",
    )


def master_url(request: SparkClusterRequest) -> str:
    """Return the master's URL for sessions."""
    return f"spark://{LOCALHOST}:{request.first_port}"


def master_program(request: SparkClusterRequest) -> DetachedProgram:
    """Return the program of the master."""
    properties = request.path / "master.properties"
    port, ui_port = _master_ports(request)
    arguments = ("--host", LOCALHOST, "--port", str(port), "--webui-port", str(ui_port))
    return DetachedProgram(
        name="spark-master",
        command=(
            *_spark_class_command("org.apache.spark.deploy.master.Master"),
            *arguments,
            "--properties-file",
            str(properties),
        ),
        marker=str(properties),
        directory=request.path,
        environment=_spark_environment(request),
        stop_seconds=STOP_TIMEOUT_S,
    )


def worker_program(request: WorkerRequest) -> DetachedProgram:
    """Return the program of a worker."""
    work_directory = request.spark.path / f"worker-{request.number}"
    port, ui_port = _worker_ports(request)
    resource_arguments = ("--cores", str(request.cores), "--memory", f"{request.memory_mb}m")
    address_arguments = (
        "--host",
        LOCALHOST,
        "--port",
        str(port),
        "--webui-port",
        str(ui_port),
        "--work-dir",
        str(work_directory),
    )
    return DetachedProgram(
        name=f"spark-worker-{request.number}",
        command=(
            *_spark_class_command("org.apache.spark.deploy.worker.Worker"),
            *resource_arguments,
            *address_arguments,
            "--properties-file",
            str(request.spark.path / "worker.properties"),
            master_url(request.spark),
        ),
        marker=str(work_directory),
        directory=request.spark.path,
        environment=_spark_environment(request.spark),
        stop_seconds=STOP_TIMEOUT_S,
    )


def _render_properties(directory: Path, is_secured: bool) -> str:
    """Write the properties of master and workers; with security, including the secret of jobs."""
    lines = [f"{name} {value}" for name, value in MASTER_PROPERTIES.items()]
    if is_secured:
        lines += [
            "spark.authenticate true",
            f"spark.authenticate.secret {read_or_create_secret(directory / SECRET_FILE_NAME)}",
        ]
        lines += ["spark.network.crypto.enabled true"]
    return "\n".join([*lines, ""])


def _ensure_running(
    program: DetachedProgram, token: str, ports: tuple[int, ...], settings: str, is_secured: bool
) -> None:
    record = ProgramRecord.read(program.directory, program.name)
    if record is not None and record.live_process is not None and record.settings == settings:
        ProgramRecord(record.pid, record.marker, token, settings).write(program.directory, program.name)
        return
    stop_program(program.directory, program.name, program.stop_seconds)
    for port in ports:
        require_free_port(LOCALHOST, port, program.name)
    program.directory.mkdir(parents=True, exist_ok=True)
    for file_name in ("master.properties", "worker.properties"):
        write_private_file(program.directory / file_name, _render_properties(program.directory, is_secured))
    start_program(program, token, settings)


def _wait_until_ready(program: DetachedProgram, condition: Any, description: str) -> None:
    def is_ready() -> bool:
        if not is_program_running(program.directory, program.name):
            raise ProgramFailedError(
                f"{program.name} ended while it was started. "
                f"The end of {program.log_file}:\n{read_tail(program.log_file)}"
            )
        return bool(condition())

    wait_until(is_ready, START_TIMEOUT_S, f"{description}; see {program.log_file}")


def _list_live_workers(request: SparkClusterRequest) -> Mapping[int, tuple[int, int]]:
    """Return cores and memory of the live workers, by port."""
    state = _read_master_state(request) or {"workers": []}
    return {
        worker["port"]: (worker["cores"], worker["memory"])
        for worker in state["workers"]
        if worker["state"] == "ALIVE"
    }


def _read_master_state(request: SparkClusterRequest) -> Any:
    """Return the state that the master reports; None if it does not answer."""
    port = _master_ports(request)[1]
    if not accepts_connections(LOCALHOST, port):
        return None
    with closing(http.client.HTTPConnection(LOCALHOST, port, timeout=3)) as connection:
        try:
            connection.request("GET", "/json/")
            return json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return None


def _spark_class_command(name: str) -> tuple[str, str]:
    return str(find_spark_home() / "bin" / "spark-class"), name


def find_spark_home() -> Path:
    """Return the folder of the pyspark package, without importing it."""
    package_spec = find_spec("pyspark")
    if package_spec is None or not package_spec.submodule_search_locations:
        raise LocalEnvironmentError("pyspark is not installed; install the project's locked requirements.")
    return Path(package_spec.submodule_search_locations[0])


def _spark_environment(request: SparkClusterRequest) -> dict[str, str]:
    jars = ensure_jars(Path(request.jars), ["spark"])
    return {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(find_spark_home()),
        "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
        "SPARK_DAEMON_CLASSPATH": ":".join(map(str, jars)),
        "SPARK_LOCAL_IP": LOCALHOST,
        "SPARK_CONF_DIR": str(request.path / "conf"),
    }


def _settings_digest(program: DetachedProgram) -> str:
    """Return a digest of what a running program cannot change; another digest restarts it."""
    properties = (f"{name}={value}" for name, value in MASTER_PROPERTIES.items())
    return hashlib.sha256("\0".join([*program.command, *properties]).encode()).hexdigest()


def _master_ports(request: SparkClusterRequest) -> tuple[int, int]:
    return request.first_port, request.first_port + _MASTER_UI_PORT_OFFSET


def _worker_ports(request: WorkerRequest) -> tuple[int, int]:
    first = request.spark.first_port
    return first + _WORKER_PORT_OFFSET + request.number, first + _WORKER_UI_PORT_OFFSET + request.number
