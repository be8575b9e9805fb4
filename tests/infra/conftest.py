"""A process manager, and small programs for it to run."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.patience import PATIENCE_S

from penstock.infra.processes import ProcessManager, Program

Eventually = Callable[..., None]

IDLE = "import signal; signal.pause()"


@pytest.fixture
def eventually() -> Eventually:
    """Wait for a condition; fail after a deadline."""

    def wait(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"the condition was not met within {seconds} s"
            time.sleep(0.02)

    return wait


@pytest.fixture
def python_program() -> Callable[..., Program]:
    """Make a program from a line of Python."""

    def make(name: str, code: str = IDLE, **options: object) -> Program:
        return Program(name, (sys.executable, "-c", code), **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ProcessManager]:
    """A manager with its own folder; on exit no process of it may remain."""
    manager = ProcessManager(tmp_path / "run", tmp_path / "logs")
    yield manager
    manager.stop()
    assert find_processes(tmp_path) == []


@pytest.fixture
def list_remaining_processes(tmp_path: Path) -> Callable[[], list[psutil.Process]]:
    """List every process that names the test's folder in its command or environment."""
    return lambda: find_processes(tmp_path)


def find_processes(folder: Path) -> list[psutil.Process]:
    processes = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        is_related = any(str(folder) in word for word in process.info["cmdline"] or [])
        is_related = is_related or str(folder) in (process.info["environ"] or {}).values()
        if is_related and process.info["status"] != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes
