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

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Command:
    """What to run, where, with which environment, into which files, and for how long at most.

    `grace_seconds` is how long it has to stop in order after the limit before it is killed.
    """

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    output: Path
    errors: Path
    limit_seconds: float
    grace_seconds: float


@dataclass(frozen=True)
class Ended:
    """How a run ended. `timed_out`: it was asked to stop; `killed`: it did not, and was killed."""

    code: int
    output: str
    errors: str
    timed_out: bool = False
    killed: bool = False


Clock = Callable[[], float]


def run(
    command: Command,
    on_line: Callable[[str], None],
    on_limit: Callable[[], None],
    clock: Clock = time.monotonic,
) -> Ended:
    """Run to the end, handing on each line as it comes; `on_limit` is called before a run is cut short.

    An exception in the reader stops the run in order.
    """
    with _private(command.output) as output, _private(command.errors) as errors:
        child = _start(command, output, errors)
    try:
        return _follow(child, command, on_line, on_limit, clock)
    except BaseException:
        _stop(child, command, clock)
        raise


def _start(command: Command, output: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command.arguments,
        cwd=command.directory,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,  # a Ctrl-C at the terminal reaches Terraform once, through us
    )


def _follow(
    child: subprocess.Popen[bytes],
    command: Command,
    on_line: Callable[[str], None],
    on_limit: Callable[[], None],
    clock: Clock,
) -> Ended:
    deadline = clock() + command.limit_seconds
    timed_out = killed = False
    with command.output.open(encoding="utf-8", errors="replace") as written:
        lines = _Lines(written, on_line)
        while _wait(child, _POLL_SECONDS) is None:
            lines.drain()
            if not timed_out and clock() >= deadline:
                timed_out = True
                on_limit()
                killed = _stop(child, command, clock)
        lines.drain()
    return Ended(child.returncode, lines.text, _read(command.errors), timed_out, killed)


def _stop(child: subprocess.Popen[bytes], command: Command, clock: Clock) -> bool:
    """Ask it to end and wait; kill it and all it started when it does not. True when it was killed."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    deadline = clock() + command.grace_seconds
    while _wait(child, _POLL_SECONDS) is None and clock() < deadline:
        continue
    if child.poll() is not None:
        return False
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return True


def _wait(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _private(path: Path) -> IO[bytes]:
    """Open a new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


class _Lines:
    """Whole lines of a file that is still being written."""

    def __init__(self, written: IO[str], on_line: Callable[[str], None]) -> None:
        self._written = written
        self._on_line = on_line
        self._parts: list[str] = []
        self._rest = ""

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def drain(self) -> None:
        new = self._written.read()
        self._parts.append(new)
        *whole, self._rest = (self._rest + new).split("\n")
        for line in whole:
            self._on_line(line)
