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

from penstock.core.errors import WaitTimeoutError
from penstock.core.files import write_atomically
from penstock.core.waiting import wait_until

KILL_TIMEOUT_S = 10.0

_STARTED_PROCESSES: list[subprocess.Popen[bytes]] = []
"""Python takes a process that nobody refers to for a forgotten one; these are meant to go on without us."""


@dataclass(frozen=True)
class DetachedProgram:
    """What to run. `marker` is a part of the command line that no other process has."""

    name: str
    command: tuple[str, ...]
    marker: str
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 20.0

    @property
    def log_file(self) -> Path:
        """Where everything that it says goes."""
        return self.directory / f"{self.name}.log"


@dataclass(frozen=True)
class ProgramRecord:
    """Which process a program is: written after it was started, gone after it was ended.

    `token` names the start; `settings` is what it was started with.
    """

    pid: int
    marker: str
    token: str
    settings: str

    @classmethod
    def read(cls, directory: Path, name: str) -> ProgramRecord | None:
        """Read a program's record; None when it was never started, or ended."""
        path = record_file(directory, name)
        return cls(**json.loads(path.read_text("utf-8"))) if path.exists() else None

    def write(self, directory: Path, name: str) -> None:
        """Write it whole or not at all."""
        write_atomically(record_file(directory, name), json.dumps(asdict(self)))

    @property
    def live_process(self) -> psutil.Process | None:
        """The process, when it is still this program; a dead one that nobody has fetched does not count."""
        try:
            process = psutil.Process(self.pid)
            # While it takes another program's place, as Spark's script does, it has none for an instant.
            command = "\0".join(process.cmdline()) or self.marker
            is_alive = process.status() != psutil.STATUS_ZOMBIE and self.marker in command
        except psutil.Error:
            return None
        return process if is_alive else None


def record_file(directory: Path, name: str) -> Path:
    """Where a program's record is."""
    return directory / f"{name}.json"


def is_program_running(directory: Path, name: str) -> bool:
    """Whether the program runs."""
    record = ProgramRecord.read(directory, name)
    return record is not None and record.live_process is not None


def start_program(program: DetachedProgram, token: str, settings: str = "") -> ProgramRecord:
    """Start it, on its own: it goes on when this process ends. Whether it works is for the caller to find out."""
    program.directory.mkdir(parents=True, exist_ok=True)
    with program.log_file.open("ab") as log_stream:
        process = subprocess.Popen(
            program.command,
            cwd=program.directory,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=log_stream,
            stderr=log_stream,
            start_new_session=True,
        )
    _STARTED_PROCESSES.append(process)
    record = ProgramRecord(process.pid, program.marker, token, settings)
    record.write(program.directory, program.name)
    return record


def stop_program(directory: Path, name: str, timeout_s: float) -> None:
    """End it in order, or by force after that time, with all that it started. Twice is no harm."""
    record = ProgramRecord.read(directory, name)
    process = record.live_process if record else None
    if process is not None:
        process_tree = [process, *_list_descendants(process)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # a paused one could not hear it
        _, still_running = psutil.wait_procs([process], timeout=timeout_s)
        _kill_process_trees(
            still_running
            or [process_or_child for process_or_child in process_tree if process_or_child.is_running()]
        )
    _STARTED_PROCESSES[:] = [
        process_or_child for process_or_child in _STARTED_PROCESSES if process_or_child.poll() is None
    ]
    record_file(directory, name).unlink(missing_ok=True)


def read_log_tail(program: DetachedProgram, lines: int = 15) -> str:
    """The end of what it said."""
    text = program.log_file.read_text("utf-8", "replace") if program.log_file.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def _list_descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill_process_trees(processes: list[psutil.Process]) -> None:
    process_tree = {member for process in processes for member in (process, *_list_descendants(process))}
    for process in process_tree:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    try:
        wait_until(
            lambda: not any(_is_alive(member) for member in process_tree),
            KILL_TIMEOUT_S,
            "killed programs to end",
        )
    except WaitTimeoutError as error:
        raise WaitTimeoutError(
            f"{error} Still there: {[member.pid for member in process_tree if _is_alive(member)]}."
        ) from error


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
