"""Small real programs for the process manager to keep."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from penstock.infra.processes import ProcessManager, Program

Eventually = Callable[..., None]

IDLE = "import signal; signal.pause()"


@pytest.fixture
def eventually() -> Eventually:
    """Wait for a condition, with a deadline; the message is the condition's own."""

    def wait(condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(0.02)

    return wait


@pytest.fixture
def python_program() -> Callable[..., Program]:
    """Make a program out of a line of Python."""

    def make(name: str, code: str = IDLE, **options: object) -> Program:
        return Program(name, (sys.executable, "-c", code), **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ProcessManager]:
    """A manager of a folder of its own; whatever happens, nothing of it is left afterwards."""
    made = ProcessManager(tmp_path / "run", tmp_path / "logs")
    yield made
    made.stop()
    assert processes_of(tmp_path) == []


@pytest.fixture
def left(tmp_path: Path) -> Callable[[], list[psutil.Process]]:
    """Find every process that has to do with the test's folder."""
    return lambda: processes_of(tmp_path)


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        ours = any(str(folder) in word for word in process.info["cmdline"] or [])
        ours = ours or str(folder) in (process.info["environ"] or {}).values()
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found
