"""Programs that outlive whoever starts them, and the records that plans read."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from penstock.core.waiting import wait_until
from penstock.infra.local import detached_programs
from penstock.infra.local.action_requests import BrokerRequest, ProgramRequest, parse_request
from penstock.infra.local.detached_programs import DetachedProgram, ProgramRecord
from penstock.infra.local.errors import ActionRequestError, LocalEnvironmentError
from penstock.infra.local.folders import remove_tree

IDLE = "import signal, sys; print(sys.argv[1], flush=True); signal.pause()"
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
while True:
    signal.pause()
"""
PARENT = """
import signal, subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid, flush=True)
signal.pause()
"""

Make = Callable[..., DetachedProgram]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[DetachedProgram] = []

    def program(code: str = IDLE, name: str = "idle") -> DetachedProgram:
        marker = f"{tmp_path}/{name}"
        made.append(DetachedProgram(name, (sys.executable, "-c", code, marker), marker, tmp_path / "run"))
        return made[-1]

    yield program
    for one in made:
        detached_programs.stop_program(one.directory, one.name, 0.1)


def said(program: DetachedProgram) -> str:
    wait_until(
        lambda: program.log_file.exists() and program.log_file.read_text() != "",
        20,
        "the program to say something",
    )
    return program.log_file.read_text().strip()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_record_names_the_process_and_how_it_was_started(make: Make) -> None:
    program = make()
    record = detached_programs.start_program(program, "planned at noon", "abc")
    assert ProgramRecord.read(program.directory, "idle") == record
    assert (record.token, record.settings) == ("planned at noon", "abc")
    assert detached_programs.is_program_running(program.directory, "idle")
    assert said(program) == program.marker


def test_a_program_is_seen_to_run_from_the_moment_it_was_started(make: Make) -> None:
    """A process has no command line for an instant: many starts, none of them taken for an end."""
    for number in range(40):
        program = make(name=f"idle-{number}")
        detached_programs.start_program(program, "t")
        assert detached_programs.is_program_running(program.directory, program.name)


def test_a_killed_program_does_not_run(make: Make) -> None:
    program = make()
    record = detached_programs.start_program(program, "t")
    os.kill(record.pid, signal.SIGKILL)
    wait_until(
        lambda: not detached_programs.is_program_running(program.directory, "idle"),
        10,
        "the program to be gone",
    )
    assert ProgramRecord.read(program.directory, "idle") == record


def test_a_process_that_got_the_same_number_is_not_the_program(make: Make) -> None:
    program = make()
    ProgramRecord(os.getpid(), program.marker, "t", "").write(tmp := program.directory.parent, "idle")
    assert not detached_programs.is_program_running(tmp, "idle")


def test_stopping_ends_it_and_its_record(make: Make) -> None:
    program = make()
    record = detached_programs.start_program(program, "t")
    said(program)
    detached_programs.stop_program(program.directory, "idle", 10)
    assert gone(record.pid)
    assert ProgramRecord.read(program.directory, "idle") is None
    detached_programs.stop_program(program.directory, "idle", 10)


def test_a_deaf_program_is_killed(make: Make) -> None:
    program = make(DEAF)
    record = detached_programs.start_program(program, "t")
    said(program)
    detached_programs.stop_program(program.directory, "idle", 0.2)
    assert gone(record.pid)


def test_a_paused_program_ends(make: Make) -> None:
    program = make()
    record = detached_programs.start_program(program, "t")
    said(program)
    os.kill(record.pid, signal.SIGSTOP)
    detached_programs.stop_program(program.directory, "idle", 10)
    assert gone(record.pid)


def test_what_a_program_started_ends_with_it(make: Make) -> None:
    program = make(PARENT)
    detached_programs.start_program(program, "t")
    child = int(said(program))
    detached_programs.stop_program(program.directory, "idle", 10)
    wait_until(lambda: gone(child), 10, "the child to be gone")


def test_removing_a_folder_takes_an_empty_one_above_with_it(tmp_path: Path) -> None:
    (tmp_path / "run" / "kafka" / "data").mkdir(parents=True)
    remove_tree(tmp_path / "run" / "kafka")
    assert not (tmp_path / "run").exists()
    remove_tree(tmp_path / "run" / "kafka")


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalEnvironmentError, match="by hand"):
        remove_tree(tmp_path / "file")


def test_an_order_is_read_strictly() -> None:
    assert parse_request('{"directory": "/d", "name": "n"}', ProgramRequest).remove == ""
    with pytest.raises(ActionRequestError, match="is no program request"):
        parse_request('{"directory": "/d", "name": "n", "more": 1}', ProgramRequest)
    with pytest.raises(ActionRequestError, match="is no broker request"):
        parse_request("{}", BrokerRequest)
