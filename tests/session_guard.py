"""Kills every process of a test run after pytest ends, however it ends: `python -m tests.session_guard MARKER`.

A test run starts brokers, Spark and whole stacks, and some of them detach from their parents. Each run sets a
marker in its environment, which all of them inherit. A guard process holds a pipe from pytest. When the pipe
closes, by a normal end or by SIGKILL, the guard kills every process that still has the marker.

Not covered: a process that a test starts with an environment of its own and that detaches from its parent.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

MARKER_VARIABLE = "TEST_SESSION_MARKER"
"""Not named PENSTOCK_…: tests of the whole stack remove such variables from its environment."""

SWEEP_INTERVAL_S = 0.1
SWEEP_TIMEOUT_S = 30.0
_GUARDS: list["subprocess.Popen[bytes]"] = []


def pytest_configure(config: pytest.Config) -> None:
    """Start the guard of this run; workers of pytest-xdist share that of their controller."""
    if not hasattr(config, "workerinput") and not _GUARDS:
        marker = f"{os.getpid()}-{time.time_ns()}"
        os.environ[MARKER_VARIABLE] = marker
        command = [sys.executable, str(Path(__file__).resolve()), marker]
        # A session of its own: Ctrl-C ends pytest, and the guard cleans up after it.
        _GUARDS.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))


def find_marked_processes(marker: str) -> list[int]:
    """Return the processes, except this one, that started with the marker in their environment."""
    entry = f"{MARKER_VARIABLE}={marker}".encode()
    marked = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if entry in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                marked.append(int(process.name))
    return marked


def kill_marked_processes(marker: str) -> None:
    """Kill until nothing with the marker is left: a process may fork while the others are killed."""
    deadline_s = time.monotonic() + SWEEP_TIMEOUT_S
    while (marked := find_marked_processes(marker)) and time.monotonic() < deadline_s:
        for pid in marked:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(SWEEP_INTERVAL_S)


if __name__ == "__main__":
    sys.stdin.buffer.read()  # returns when pytest has ended
    kill_marked_processes(sys.argv[1])
