"""Programs that outlive whoever starts them, each with a record that says which process it is.

The record is for Terraform's HCL as much as for us: a plan reads it, looks whether `/proc/PID/cmdline`
still holds the marker, and so sees what is down without starting anything.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from penstock.infra.errors import NotInTimeError
from penstock.infra.files import write_whole
from penstock.infra.waiting import wait_until

KILL_SECONDS = 10.0

_started: list[subprocess.Popen[bytes]] = []
"""Python takes a process that nobody refers to for a forgotten one; these are meant to go on without us."""


@dataclass(frozen=True)
class Program:
    """What to run. `marker` is a part of the command line that no other process has."""

    name: str
    command: tuple[str, ...]
    marker: str
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 20.0

    @property
    def log(self) -> Path:
        """Where everything that it says goes."""
        return self.directory / f"{self.name}.log"


@dataclass(frozen=True)
class Record:
    """Which process a program is: written after it was started, gone after it was ended.

    `token` names the start; `settings` is what it was started with.
    """

    pid: int
    marker: str
    token: str
    settings: str

    @classmethod
    def read(cls, directory: Path, name: str) -> Record | None:
        """Read a program's record; None when it was never started, or ended."""
        path = record_file(directory, name)
        return cls(**json.loads(path.read_text("utf-8"))) if path.exists() else None

    def write(self, directory: Path, name: str) -> None:
        """Write it whole or not at all."""
        write_whole(record_file(directory, name), json.dumps(asdict(self)))

    @property
    def process(self) -> psutil.Process | None:
        """The process, when it is still this program; a dead one that nobody has fetched does not count."""
        try:
            process = psutil.Process(self.pid)
            # While it takes another program's place, as Spark's script does, it has none for an instant.
            command = "\0".join(process.cmdline()) or self.marker
            runs = process.status() != psutil.STATUS_ZOMBIE and self.marker in command
        except psutil.Error:
            return None
        return process if runs else None


def record_file(directory: Path, name: str) -> Path:
    """Where a program's record is."""
    return directory / f"{name}.json"


def runs(directory: Path, name: str) -> bool:
    """Whether the program runs."""
    record = Record.read(directory, name)
    return record is not None and record.process is not None


def start(program: Program, token: str, settings: str = "") -> Record:
    """Start it, on its own: it goes on when this process ends. Whether it works is for the caller to find out."""
    program.directory.mkdir(parents=True, exist_ok=True)
    with program.log.open("ab") as log:
        process = subprocess.Popen(
            program.command,
            cwd=program.directory,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _started.append(process)
    record = Record(process.pid, program.marker, token, settings)
    record.write(program.directory, program.name)
    return record


def stop(directory: Path, name: str, seconds: float) -> None:
    """End it in order, or by force after that time, with all that it started. Twice is no harm."""
    record = Record.read(directory, name)
    process = record.process if record else None
    if process is not None:
        family = [process, *_descendants(process)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # a paused one could not hear it
        _, left = psutil.wait_procs([process], timeout=seconds)
        _kill_all(left or [one for one in family if one.is_running()])
    _started[:] = [one for one in _started if one.poll() is None]
    record_file(directory, name).unlink(missing_ok=True)


def last_lines(program: Program, lines: int = 15) -> str:
    """The end of what it said."""
    text = program.log.read_text("utf-8", "replace") if program.log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill_all(processes: list[psutil.Process]) -> None:
    family = {one for process in processes for one in (process, *_descendants(process))}
    for process in family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    try:
        wait_until(lambda: not any(_lives(one) for one in family), KILL_SECONDS, "killed programs to end")
    except NotInTimeError as error:
        raise NotInTimeError(f"{error} Still there: {[one.pid for one in family if _lives(one)]}.") from error


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
