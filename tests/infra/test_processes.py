"""The process manager with real processes: started, changed, killed, paused, stopped."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from penstock.infra.errors import ManagerError, NotInTimeError, ProgramsNotReadyError
from penstock.infra.ports import free_ports
from penstock.infra.processes import Manager, Program

pytestmark = pytest.mark.whole

MakeProgram = Callable[..., Program]
Left = Callable[[], list[psutil.Process]]

SERVE = "import http.server as h; h.HTTPServer(('127.0.0.1', {}), h.BaseHTTPRequestHandler).serve_forever()"
WITH_CHILD = """
import subprocess, sys, signal
subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()', {marker!r}])
signal.pause()
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()"


def _state(manager: Manager, name: str) -> str:
    return next(status.state for status in manager.status() if status.name == name)


def _handles_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    [handled] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(handled, 16) & 1 << (signal.SIGTERM - 1))


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
    assert _state(manager, "one") == "stopped"
    manager.start([python_program("one")])
    assert _state(manager, "one") == "running"


def test_a_killed_program_comes_back(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    pid = manager.pids()["one"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: manager.pids().get("one") not in (None, pid))
    [status] = manager.status()
    assert (status.restarts, status.failures) == (1, 1)
    assert "ended by SIGKILL" in manager.tail("one")


def test_a_killed_tether_comes_back_and_takes_its_program_with_it(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    [before] = manager.status()
    assert before.tether_pid is not None
    os.kill(before.tether_pid, signal.SIGKILL)
    eventually(lambda: manager.status()[0].pid not in (None, before.pid))
    assert not psutil.pid_exists(before.pid or 0)


def test_a_killed_supervisord_comes_back_with_everything(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    marker = str(tmp_path / "marker")
    manager.start([python_program("host", WITH_CHILD.format(marker=marker)), python_program("two")])
    before = manager.pids()
    eventually(psutil.Process(before["host"]).children)
    [child] = psutil.Process(before["host"]).children()
    os.kill(before["manager"], signal.SIGKILL)
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in (*before.values(), child.pid)))
    manager.start([python_program("host", WITH_CHILD.format(marker=marker)), python_program("two")])
    assert set(manager.pids()) == set(before)


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_when_the_keeper_of_the_manager_is_killed_everything_ends(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None], left: Left, paused: bool
) -> None:
    program = python_program("one", environment={"FOLDER": str(manager.log("one").parent)})
    manager.start([program])
    pids = manager.pids()
    if paused:
        os.kill(pids["one"], signal.SIGSTOP)
    keeper = psutil.Process(pids["manager"]).ppid()
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: left() == [])
    assert not manager.running()


def test_a_start_clears_what_a_killed_manager_left_paused(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    [before] = manager.status()
    assert before.tether_pid is not None
    os.kill(before.tether_pid, signal.SIGSTOP)
    os.kill(psutil.Process(manager.pids()["manager"]).ppid(), signal.SIGKILL)
    eventually(lambda: not manager.running())
    manager.start([python_program("one")])
    assert not psutil.pid_exists(before.tether_pid)
    assert not psutil.pid_exists(before.pid or 0)
    assert manager.status()[0].ready


def test_children_of_a_killed_program_end_with_it(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    manager.start([python_program("host", WITH_CHILD.format(marker=str(tmp_path)))])
    host = psutil.Process(manager.pids()["host"])
    eventually(host.children)
    [child] = host.children()
    host.kill()
    eventually(lambda: not child.is_running())


def test_a_process_whose_parent_ended_is_ended(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    code = f"""
import os, pathlib, signal
middle = os.fork()
if middle == 0:
    orphan = os.fork()
    if orphan == 0:
        pathlib.Path({str(tmp_path / "orphan")!r}).write_text(str(os.getpid()))
        signal.pause()
    os._exit(0)
os.waitpid(middle, 0)
signal.pause()
"""
    manager.start([python_program("forks", code)])
    eventually(lambda: "lost its parent" in manager.tail("forks"))
    eventually(lambda: not psutil.pid_exists(int((tmp_path / "orphan").read_text())))
    assert manager.status()[0].restarts == 0


def test_a_paused_program_is_stopped_all_the_same(manager: Manager, python_program: MakeProgram) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    os.kill(manager.pids()["one"], signal.SIGSTOP)
    manager.stop()
    assert not manager.running()


@pytest.mark.parametrize("who", ["tether", "manager", "keeper"])
def test_a_paused_part_of_the_manager_does_not_keep_it_from_ending(
    manager: Manager, python_program: MakeProgram, left: Left, who: str
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    [status] = manager.status()
    supervisord = manager.pids()["manager"]
    pids = {
        "tether": status.tether_pid,
        "manager": supervisord,
        "keeper": psutil.Process(supervisord).ppid(),
    }
    os.kill(pids[who] or 0, signal.SIGSTOP)
    manager.stop()
    assert not psutil.pid_exists(status.pid or 0)
    assert left() == []


def test_a_manager_that_hangs_says_so_and_is_replaced_by_a_start(
    manager: Manager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    before = manager.pids()
    os.kill(before["manager"], signal.SIGSTOP)
    with pytest.raises(ManagerError, match=r"does not answer .* `make down` ends it"):
        manager.status()
    manager.start([python_program("one")])
    assert manager.pids()["manager"] != before["manager"]


def test_a_program_that_does_not_heed_its_signal_is_ended_by_force(
    manager: Manager, python_program: MakeProgram
) -> None:
    manager.start([python_program("deaf", DEAF, stop_seconds=0.5)])
    manager.stop()
    assert "ended by force" in manager.tail("deaf")


def test_all_together_stop_within_the_time_there_is_whatever_hangs(
    manager: Manager, python_program: MakeProgram, left: Left
) -> None:
    deaf = [python_program(f"deaf-{n}", DEAF, stop_seconds=6, start_order=n) for n in range(4)]
    manager.start([*deaf, python_program("host", DEAF, stop_seconds=6, start_order=9)])
    host = next(status for status in manager.status() if status.name == "host")
    for pid in (host.pid, host.tether_pid):
        os.kill(pid or 0, signal.SIGSTOP)
    began = time.monotonic()
    manager.stop(6)
    assert time.monotonic() - began < 6 + 6, "one after the other they would take 50 s"
    assert left() == []


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
    eventually(lambda: all(_handles_term(pid) for name, pid in manager.pids().items()))
    manager.stop()
    assert ended.read_text().split() == ["feed", "host", "broker"]


def test_a_program_waits_for_the_address_that_it_needs(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    [port] = free_ports(1)
    address = ("127.0.0.1", port)
    with pytest.raises(ProgramsNotReadyError, match=rf"needs is not ready \(waiting: for 127.0.0.1:{port}"):
        manager.start([python_program("needs", waits_for=(address,))], seconds=1.5)
    server = python_program("server", SERVE.format(port), answers_at=address)
    manager.start([server, python_program("needs", waits_for=(address,))])
    assert [status.ready for status in manager.status()] == [True, True]


def test_a_program_that_keeps_failing_is_reported_with_its_log_and_never_given_up(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    mend = tmp_path / "mend"
    code = (
        f"import pathlib, signal\nif not pathlib.Path({str(mend)!r}).exists(): raise SystemExit('no oil')\n"
        "signal.pause()"
    )
    [port] = free_ports(1)
    failing = python_program("pump", code, answers_at=("127.0.0.1", port))
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([failing])
    assert manager.status()[0].failing
    mend.touch()
    eventually(lambda: _state(manager, "pump") == "running")


def test_a_program_that_tells_is_ready_when_it_has_told_and_not_before(
    manager: Manager, python_program: MakeProgram, tmp_path: Path
) -> None:
    mend = tmp_path / "mend"
    fails_late = (
        "import pathlib, signal, time\nfrom penstock.infra.readiness import tell_ready\ntime.sleep(1.2)\n"
        f"if not pathlib.Path({str(mend)!r}).exists(): raise SystemExit('no oil')\n"
        "tell_ready()\nsignal.pause()"
    )
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([python_program("pump", fails_late, tells_ready=True)])
    mend.touch()
    manager.start([python_program("pump", fails_late, tells_ready=True)])
    assert manager.status()[0].ready
    manager.stop_program("pump")
    assert not manager.status()[0].ready


def test_a_start_tries_at_once_what_waits_for_its_next_try(
    manager: Manager, python_program: MakeProgram, tmp_path: Path
) -> None:
    mend = tmp_path / "mend"
    code = (
        f"import pathlib, signal\nif not pathlib.Path({str(mend)!r}).exists(): raise SystemExit('no oil')\n"
        "signal.pause()"
    )
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([python_program("pump", code)])
    mend.touch()
    manager.start([python_program("pump", code)])
    [status] = manager.status()
    assert (status.ready, status.failures) == (True, 0)


def test_only_what_is_awaited_is_waited_for(manager: Manager, python_program: MakeProgram) -> None:
    fails = python_program("fails", "raise SystemExit(1)")
    manager.start([python_program("base"), fails], awaited=["base"])
    assert [status.ready for status in manager.status()] == [True, False]


def test_a_program_that_is_retried_can_be_stopped_meanwhile(
    manager: Manager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    with pytest.raises(ProgramsNotReadyError):
        manager.start([python_program("fails", "raise SystemExit(1)")])
    eventually(lambda: _state(manager, "fails") == "retrying")
    manager.stop_program("fails")
    assert _state(manager, "fails") == "stopped"


def test_a_preparation_runs_until_it_is_done_and_not_again(
    manager: Manager, python_program: MakeProgram, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    code = (
        f"import pathlib; tries = pathlib.Path({str(tries)!r}); tries.open('a').write('x')\n"
        "raise SystemExit(0 if len(tries.read_text()) == 2 else 1)"
    )
    prepare = python_program("prepare", code, until_done=True)
    manager.start([prepare])
    assert (_state(manager, "prepare"), tries.read_text()) == ("done", "xx")
    manager.start([prepare])
    assert tries.read_text() == "xx"


def test_a_command_that_does_not_exist_is_named(manager: Manager) -> None:
    with pytest.raises(ProgramsNotReadyError, match=r"cannot be started: No such file .*/no/such/program"):
        manager.start([Program("absent", ("/no/such/program",))])


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
    eventually(lambda: log.with_name("talks.log.1").exists())
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
