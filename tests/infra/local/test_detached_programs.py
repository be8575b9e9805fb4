"""Programs that outlive the process that starts them, and their records."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local import detached_programs
from penstock.infra.local.detached_programs import DetachedProgram, ProgramRecord

IDLE = "import signal, sys; print(sys.argv[1], flush=True); signal.pause()"
IGNORES_SIGTERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("started", flush=True)
while True:
    signal.pause()
"""
PARENT = """
import signal, subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid, flush=True)
signal.pause()
"""

MakeProgram = Callable[..., DetachedProgram]


@pytest.fixture
def make_program(tmp_path: Path) -> Iterator[MakeProgram]:
    programs: list[DetachedProgram] = []

    def make(code: str = IDLE, name: str = "idle") -> DetachedProgram:
        marker = f"{tmp_path}/{name}"
        programs.append(DetachedProgram(name, (sys.executable, "-c", code, marker), marker, tmp_path / "run"))
        return programs[-1]

    yield make
    for started in programs:
        detached_programs.stop_program(started.directory, started.name, 0.1)


def wait_for_output(program: DetachedProgram) -> str:
    wait_until(
        lambda: program.log_file.exists() and program.log_file.read_text() != "",
        PATIENCE_S,
        "output of the program",
    )
    return program.log_file.read_text().strip()


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_record_names_the_process_and_how_it_was_started(make_program: MakeProgram) -> None:
    program = make_program()
    record = detached_programs.start_program(program, "planned at noon", "abc")
    assert ProgramRecord.read(program.directory, "idle") == record
    assert (record.token, record.settings) == ("planned at noon", "abc")
    assert detached_programs.is_program_running(program.directory, "idle")
    assert wait_for_output(program) == program.marker


def test_a_program_is_running_immediately_after_its_start(make_program: MakeProgram) -> None:
    """A new process has no command line for an instant; that must not count as stopped."""
    for number in range(40):
        program = make_program(name=f"idle-{number}")
        detached_programs.start_program(program, "t")
        assert detached_programs.is_program_running(program.directory, program.name)


def test_a_killed_program_does_not_run(make_program: MakeProgram) -> None:
    program = make_program()
    record = detached_programs.start_program(program, "t")
    os.kill(record.pid, signal.SIGKILL)
    wait_until(
        lambda: not detached_programs.is_program_running(program.directory, "idle"),
        PATIENCE_S,
        "the program to be gone",
    )
    assert ProgramRecord.read(program.directory, "idle") == record


def test_another_process_with_the_same_pid_is_not_the_program(make_program: MakeProgram) -> None:
    program = make_program()
    ProgramRecord(os.getpid(), program.marker, "t", "").write(tmp := program.directory.parent, "idle")
    assert not detached_programs.is_program_running(tmp, "idle")


def test_stopping_ends_the_program_and_removes_its_record(make_program: MakeProgram) -> None:
    program = make_program()
    record = detached_programs.start_program(program, "t")
    wait_for_output(program)
    detached_programs.stop_program(program.directory, "idle", 10)
    assert is_gone(record.pid)
    assert ProgramRecord.read(program.directory, "idle") is None
    detached_programs.stop_program(program.directory, "idle", 10)


def test_a_program_that_ignores_sigterm_is_killed(make_program: MakeProgram) -> None:
    program = make_program(IGNORES_SIGTERM)
    record = detached_programs.start_program(program, "t")
    wait_for_output(program)
    detached_programs.stop_program(program.directory, "idle", 0.2)
    assert is_gone(record.pid)


def test_a_paused_program_is_stopped(make_program: MakeProgram) -> None:
    program = make_program()
    record = detached_programs.start_program(program, "t")
    wait_for_output(program)
    os.kill(record.pid, signal.SIGSTOP)
    detached_programs.stop_program(program.directory, "idle", 10)
    assert is_gone(record.pid)


def test_children_of_a_program_are_stopped_with_it(make_program: MakeProgram) -> None:
    program = make_program(PARENT)
    detached_programs.start_program(program, "t")
    child = int(wait_for_output(program))
    detached_programs.stop_program(program.directory, "idle", 10)
    wait_until(lambda: is_gone(child), PATIENCE_S, "the child to be gone")
