"""Programs that outlive the process that starts them, each with a record of its process.

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
from penstock.infra.process_trees import kill_process, list_descendants

KILL_TIMEOUT_S = 10.0

_STARTED_PROCESSES: list[subprocess.Popen[bytes]] = []
"""References to started processes; without one, Python warns about a process that still runs."""


@dataclass(frozen=True)
class DetachedProgram:
    """The program to run. `marker` is a part of the command line that no other process has."""

    name: str
    command: tuple[str, ...]
    marker: str
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 20.0

    @property
    def log_file(self) -> Path:
        """Log file of the program's output."""
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
        """Read a program's record; None if it was never started, or was stopped."""
        path = record_file(directory, name)
        return cls(**json.loads(path.read_text("utf-8"))) if path.exists() else None

    def write(self, directory: Path, name: str) -> None:
        """Write the record atomically."""
        write_atomically(record_file(directory, name), json.dumps(asdict(self)))

    @property
    def live_process(self) -> psutil.Process | None:
        """The process if it is still this program; a zombie does not count."""
        try:
            process = psutil.Process(self.pid)
            # While a process replaces itself by exec, its command line is empty for an instant.
            command = "\0".join(process.cmdline()) or self.marker
            is_alive = process.status() != psutil.STATUS_ZOMBIE and self.marker in command
        except psutil.Error:
            return None
        return process if is_alive else None


def record_file(directory: Path, name: str) -> Path:
    """Return the path of a program's record."""
    return directory / f"{name}.json"


def is_program_running(directory: Path, name: str) -> bool:
    """Return whether the program runs."""
    record = ProgramRecord.read(directory, name)
    return record is not None and record.live_process is not None


def start_program(program: DetachedProgram, token: str, settings: str = "") -> ProgramRecord:
    """Start the program detached from this process. Does not check that it works."""
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
    """Stop the program and all its descendants, by force after a timeout. Does nothing if it does not run."""
    record = ProgramRecord.read(directory, name)
    process = record.live_process if record else None
    if process is not None:
        process_tree = [process, *list_descendants(process)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # a paused process does not handle SIGTERM
        _, still_running = psutil.wait_procs([process], timeout=timeout_s)
        _kill_process_trees(
            still_running
            or [process_or_child for process_or_child in process_tree if process_or_child.is_running()]
        )
    _STARTED_PROCESSES[:] = [
        process_or_child for process_or_child in _STARTED_PROCESSES if process_or_child.poll() is None
    ]
    record_file(directory, name).unlink(missing_ok=True)


def _kill_process_trees(processes: list[psutil.Process]) -> None:
    process_tree = {member for process in processes for member in (process, *list_descendants(process))}
    for process in process_tree:
        kill_process(process)
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
