"""One run of Terraform as a process: its lines while it runs, a time limit, an end in order.

The lines go into a file and are read from there, so the run does not depend on its reader: when the
process that started it is killed, Terraform finishes what it began and writes its state.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_POLL_INTERVAL_S = 0.05


@dataclass(frozen=True)
class ChildCommand:
    """What to run, where, with which environment, into which files, and for how long at most.

    `grace_s` is how long it may take to stop after the timeout before it is killed.
    """

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    stdout_file: Path
    stderr_file: Path
    timeout_s: float
    grace_s: float


@dataclass(frozen=True)
class ChildResult:
    """How a run ended. `has_timed_out`: it was asked to stop; `was_killed`: it did not stop, and was killed."""

    exit_code: int
    stdout: str
    stderr: str
    has_timed_out: bool = False
    was_killed: bool = False


MonotonicClock = Callable[[], float]


def run_child(
    command: ChildCommand,
    on_line: Callable[[str], None],
    on_timeout: Callable[[], None],
    clock: MonotonicClock = time.monotonic,
) -> ChildResult:
    """Run to the end, and pass on each line as it comes; `on_timeout` is called before a run is stopped.

    An exception in the reader stops the run in order.
    """
    with _open_private_file(command.stdout_file) as stdout, _open_private_file(command.stderr_file) as stderr:
        child = _start_child(command, stdout, stderr)
    try:
        return _follow_child(child, command, on_line, on_timeout, clock)
    except BaseException:
        _stop_child(child, command, clock)
        raise


def _start_child(command: ChildCommand, stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command.arguments,
        cwd=command.directory,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,  # a Ctrl-C at the terminal reaches Terraform once, through us
    )


def _follow_child(
    child: subprocess.Popen[bytes],
    command: ChildCommand,
    on_line: Callable[[str], None],
    on_timeout: Callable[[], None],
    clock: MonotonicClock,
) -> ChildResult:
    deadline = clock() + command.timeout_s
    has_timed_out = was_killed = False
    with command.stdout_file.open(encoding="utf-8", errors="replace") as stdout:
        line_reader = _LineReader(stdout, on_line)
        while _wait_for_exit(child, _POLL_INTERVAL_S) is None:
            line_reader.drain()
            if not has_timed_out and clock() >= deadline:
                has_timed_out = True
                on_timeout()
                was_killed = _stop_child(child, command, clock)
        line_reader.drain()
    return ChildResult(
        child.returncode, line_reader.text, _read_text(command.stderr_file), has_timed_out, was_killed
    )


def _stop_child(child: subprocess.Popen[bytes], command: ChildCommand, clock: MonotonicClock) -> bool:
    """Ask it to end and wait; kill it and all it started when it does not. True when it was killed."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    deadline = clock() + command.grace_s
    while _wait_for_exit(child, _POLL_INTERVAL_S) is None and clock() < deadline:
        continue
    if child.poll() is not None:
        return False
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return True


def _wait_for_exit(child: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    try:
        return child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


def _open_private_file(path: Path) -> IO[bytes]:
    """Open a new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


class _LineReader:
    """Whole lines of a file that is still being written."""

    def __init__(self, stream: IO[str], on_line: Callable[[str], None]) -> None:
        self._stream = stream
        self._on_line = on_line
        self._chunks: list[str] = []
        self._partial_line = ""

    @property
    def text(self) -> str:
        return "".join(self._chunks)

    def drain(self) -> None:
        chunk = self._stream.read()
        self._chunks.append(chunk)
        *complete_lines, self._partial_line = (self._partial_line + chunk).split("\n")
        for line in complete_lines:
            self._on_line(line)
