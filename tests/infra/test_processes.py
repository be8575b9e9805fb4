"""The process manager with real processes: started, changed, stopped."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.infra.keeping import Left, MakeProgram, state_of

from penstock.infra.errors import ManagerError, NotInTimeError
from penstock.infra.processes import Manager, Program

pytestmark = pytest.mark.whole


def test_programs_run_and_stop_and_nothing_is_left(
    manager: Manager, python_program: MakeProgram, left: Left
) -> None:
    manager.start([python_program("one"), python_program("two")])
    assert [(status.name, status.ready) for status in manager.status()] == [("one", True), ("two", True)]
    assert set(manager.pids()) == {"one", "two", "manager"}
    manager.stop()
    assert (manager.running(), manager.status(), manager.pids(), left()) == (False, [], {}, [])


def test_starting_again_changes_nothing_that_is_right(manager: Manager, python_program: MakeProgram) -> None:
    programs = [python_program("one"), python_program("two")]
    manager.start(programs)
    before = manager.pids()
    manager.start(programs)
    assert manager.pids() == before


def test_starting_again_restarts_what_changed_and_stops_what_is_gone(
    manager: Manager, python_program: MakeProgram
) -> None:
    manager.start([python_program("same"), python_program("changed"), python_program("gone")])
    before = manager.pids()
    manager.start(
        [python_program("same"), python_program("changed", environment={"A": "1"}), python_program("new")]
    )
    after = manager.pids()
    assert set(after) == {"same", "changed", "new", "manager"}
    assert after["same"] == before["same"]
    assert after["changed"] != before["changed"]
    assert not psutil.pid_exists(before["gone"])


def test_stopping_what_does_not_run_is_no_error(manager: Manager) -> None:
    manager.stop()
    manager.stop()


def test_a_program_that_was_stopped_is_started_again_by_a_start(
    manager: Manager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one")])
    manager.stop_program("one")
    assert state_of(manager, "one") == "stopped"
    manager.start([python_program("one")])
    assert state_of(manager, "one") == "running"


def test_what_does_not_stop_in_time_is_named(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_vain(*_: object) -> None:
        raise NotInTimeError("Waited 30 s for host to stop, in vain.")

    monkeypatch.setattr(Manager, "_apply", in_vain)
    with pytest.raises(NotInTimeError, match="host to stop"):
        manager.start([])


def test_programs_stop_in_the_reverse_of_their_order(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
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
    eventually(lambda: all(handles_term(pid) for name, pid in manager.pids().items()))
    manager.stop()
    assert ended.read_text().split() == ["feed", "host", "broker"]


def test_a_folder_with_a_long_name_has_its_socket_elsewhere(
    tmp_path: Path, python_program: MakeProgram
) -> None:
    folder = tmp_path / ("long" * 20) / "100% and more"
    manager = Manager(folder / "run", folder / "logs")
    try:
        manager.start([python_program("one")])
        assert manager.status()[0].ready
        manager.start([replace(python_program("one"), environment={"NOTE": 'a "b" %(c)s ; # d'})])
        assert psutil.Process(manager.pids()["one"]).environ()["NOTE"] == 'a "b" %(c)s ; # d'
    finally:
        manager.stop()


def test_logs_are_rotated(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    code = (
        "import signal, sys\nfor n in range(12): sys.stdout.write('x' * 1_000_000 + chr(10))\nsignal.pause()"
    )
    manager.start([python_program("talks", code)])
    log = manager.log("talks")
    eventually(lambda: log.with_name("talks.log.1").exists() and log.exists())
    assert log.stat().st_size < 11_000_000


def test_two_managers_run_beside_each_other(tmp_path: Path, python_program: MakeProgram) -> None:
    managers = [Manager(tmp_path / name / "run", tmp_path / name / "logs") for name in ("a", "b")]
    try:
        for manager in managers:
            manager.start([python_program("one")])
        managers[0].stop()
        assert managers[1].status()[0].ready
    finally:
        for manager in managers:
            manager.stop()


def test_a_name_that_cannot_name_a_log_is_refused() -> None:
    with pytest.raises(ManagerError, match="called 'My Program'"):
        Program("My Program", ("true",))


def handles_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    [handled] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(handled, 16) & 1 << (signal.SIGTERM - 1))
