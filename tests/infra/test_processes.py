"""The process manager with real processes: started, changed, stopped."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.infra.keeping import Left, MakeProgram, state_of

from penstock.core.errors import WaitTimeoutError
from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes import ProcessManager, Program

pytestmark = pytest.mark.whole


def test_programs_run_and_stop_and_nothing_is_left(
    manager: ProcessManager, python_program: MakeProgram, left: Left
) -> None:
    manager.start([python_program("one"), python_program("two")])
    assert [(status.name, status.ready) for status in manager.list_statuses()] == [
        ("one", True),
        ("two", True),
    ]
    assert set(manager.list_pids()) == {"one", "two", "manager"}
    manager.stop()
    assert (manager.is_running(), manager.list_statuses(), manager.list_pids(), left()) == (False, [], {}, [])


def test_starting_again_changes_nothing_that_is_right(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    programs = [python_program("one"), python_program("two")]
    manager.start(programs)
    before = manager.list_pids()
    manager.start(programs)
    assert manager.list_pids() == before


def test_starting_again_restarts_what_changed_and_stops_what_is_gone(
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


def test_stopping_what_does_not_run_is_no_error(manager: ProcessManager) -> None:
    manager.stop()
    manager.stop()


def test_a_program_that_was_stopped_is_started_again_by_a_start(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one")])
    manager.stop_program("one")
    assert state_of(manager, "one") == "stopped"
    manager.start([python_program("one")])
    assert state_of(manager, "one") == "running"


def test_what_does_not_stop_in_time_is_named(
    manager: ProcessManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_vain(*_: object) -> None:
        raise WaitTimeoutError("Waited 30 s for host to stop, in vain.")

    monkeypatch.setattr(ProcessManager, "_apply_configuration", in_vain)
    with pytest.raises(WaitTimeoutError, match="host to stop"):
        manager.start([])


def test_programs_stop_in_the_reverse_of_their_order(
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


def test_a_folder_with_a_long_name_has_its_socket_elsewhere(
    tmp_path: Path, python_program: MakeProgram
) -> None:
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


def test_two_managers_run_beside_each_other(tmp_path: Path, python_program: MakeProgram) -> None:
    managers = [ProcessManager(tmp_path / name / "run", tmp_path / name / "logs") for name in ("a", "b")]
    try:
        for manager in managers:
            manager.start([python_program("one")])
        managers[0].stop()
        assert managers[1].list_statuses()[0].ready
    finally:
        for manager in managers:
            manager.stop()


def test_a_name_that_cannot_name_a_log_is_refused() -> None:
    with pytest.raises(ProcessManagerError, match="called 'My Program'"):
        Program("My Program", ("true",))


def handles_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    [handled] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(handled, 16) & 1 << (signal.SIGTERM - 1))
