"""Dagster's code server, when its child process is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.ports import LOCALHOST, accepts_connections, find_free_ports
from penstock.platform.stack.programs import CODE_SERVER_MODULE


def find_code_processes(server: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return [child for child in psutil.Process(server.pid).children() if "grpc" in child.cmdline()]


def test_the_code_server_ends_with_its_code_process(tmp_path: Path) -> None:
    code, (port,) = tmp_path / "code.py", find_free_ports(1)
    code.write_text("import dagster\n\ndefs = dagster.Definitions()\n", "utf-8")
    arguments = ["code-server", "start", "-f", str(code), "-h", LOCALHOST, "-p", str(port)]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", CODE_SERVER_MODULE, *arguments],
            env={**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1"},
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: accepts_connections(LOCALHOST, port, 0.2), PATIENCE_S, "the code server to answer")
        wait_until(lambda: find_code_processes(server), PATIENCE_S, "the code to be loaded")
        find_code_processes(server)[0].send_signal(signal.SIGKILL)
        assert server.wait(60) == 1
    finally:
        server.kill()
        server.wait()
    assert "Code process exited" in (tmp_path / "log").read_text("utf-8")
