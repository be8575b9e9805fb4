"""Start, change and stop of real programs."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.infra.processes.process_states import ListProcesses, MakeProgram, program_state

from penstock.core.errors import WaitTimeoutError
from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes import ProcessManager, Program

pytestmark = pytest.mark.whole


def test_programs_start_and_stop_without_remaining_processes(
    manager: ProcessManager, python_program: MakeProgram, list_remaining_processes: ListProcesses
) -> None:
    manager.start([python_program("one"), python_program("two")])
    assert [(status.name, status.ready) for status in manager.list_statuses()] == [
        ("one", True),
        ("two", True),
    ]
    assert set(manager.list_pids()) == {"one", "two", "manager"}
    manager.stop()
    assert (
        manager.is_running(),
        manager.list_statuses(),
        manager.list_pids(),
        list_remaining_processes(),
    ) == (False, [], {}, [])


def test_a_second_start_leaves_running_programs_alone(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    programs = [python_program("one"), python_program("two")]
    manager.start(programs)
    before = manager.list_pids()
    manager.start(programs)
    assert manager.list_pids() == before


def test_a_second_start_restarts_changed_programs_and_stops_removed_ones(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("same"), python_program("changed"), python_program("gone")])
    before = manager.list_pids()
    manager.start(
        [python_program("same"), python_program("changed", environment={"A": "1"}), python_program("new")]
    )
    after = manager.list_pids()
    assert set(after) == {"same", "changed", "new", "manager"}
    assert after["same"] == before["same"]
    assert after["changed"] != before["changed"]
    assert not psutil.pid_exists(before["gone"])


def test_stopping_twice_is_no_error(manager: ProcessManager) -> None:
    manager.stop()
    manager.stop()


def test_a_stopped_program_is_started_by_the_next_start(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one")])
    manager.stop_program("one")
    assert program_state(manager, "one") == "stopped"
    manager.start([python_program("one")])
    assert program_state(manager, "one") == "running"


def test_a_program_that_does_not_stop_in_time_is_named(
    manager: ProcessManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_out(*_: object) -> None:
        raise WaitTimeoutError("Timed out after 30 s waiting for host to stop.")

    monkeypatch.setattr(ProcessManager, "_apply_configuration", time_out)
    with pytest.raises(WaitTimeoutError, match="host to stop"):
        manager.start([])


def test_programs_stop_in_reverse_order(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    code = (
        "import signal, sys, time, pathlib\n"
        f"def end(*_): pathlib.Path({str(ended)!r}).open('a').write({{name!r}} + ' '); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "while True: signal.pause()"
    )
    names = [("broker", 10), ("host", 20), ("feed", 30)]
    manager.start([python_program(name, code.format(name=name), start_order=order) for name, order in names])
    eventually(lambda: all(handles_term(pid) for name, pid in manager.list_pids().items()))
    manager.stop()
    assert ended.read_text().split() == ["feed", "host", "broker"]


def test_a_manager_works_in_a_folder_with_a_long_name(tmp_path: Path, python_program: MakeProgram) -> None:
    folder = tmp_path / ("long" * 20) / "100% and more"
    manager = ProcessManager(folder / "run", folder / "logs")
    try:
        manager.start([python_program("one")])
        assert manager.list_statuses()[0].ready
        manager.start([replace(python_program("one"), environment={"NOTE": 'a "b" %(c)s ; # d'})])
        assert psutil.Process(manager.list_pids()["one"]).environ()["NOTE"] == 'a "b" %(c)s ; # d'
    finally:
        manager.stop()


def test_logs_are_rotated(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    code = (
        "import signal, sys\nfor n in range(12): sys.stdout.write('x' * 1_000_000 + chr(10))\nsignal.pause()"
    )
    manager.start([python_program("talks", code)])
    log = manager.log_file("talks")
    eventually(lambda: log.with_name("talks.log.1").exists() and log.exists())
    assert log.stat().st_size < 11_000_000


def test_two_managers_run_side_by_side(tmp_path: Path, python_program: MakeProgram) -> None:
    managers = [ProcessManager(tmp_path / name / "run", tmp_path / name / "logs") for name in ("a", "b")]
    try:
        for manager in managers:
            manager.start([python_program("one")])
        managers[0].stop()
        assert managers[1].list_statuses()[0].ready
    finally:
        for manager in managers:
            manager.stop()


def test_an_invalid_program_name_is_refused() -> None:
    with pytest.raises(ProcessManagerError, match="called 'My Program'"):
        Program("My Program", ("true",))


def handles_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    [handled] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(handled, 16) & 1 << (signal.SIGTERM - 1))
