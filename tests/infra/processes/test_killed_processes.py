"""Programs, tethers and managers that are killed, paused or ignore signals."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.infra.processes.process_states import ListProcesses, MakeProgram

from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes import ProcessManager

pytestmark = pytest.mark.whole

WITH_CHILD = """
import subprocess, sys, signal
subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()', {marker!r}])
signal.pause()
"""
IGNORES_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()"


def test_a_killed_program_is_restarted(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    pid = manager.list_pids()["one"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: manager.list_pids().get("one") not in (None, pid))
    [status] = manager.list_statuses()
    assert (status.restarts, status.failures) == (1, 1)
    assert "ended by SIGKILL" in manager.read_log_tail("one")


def test_a_killed_tether_is_restarted_with_its_program(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    [before] = manager.list_statuses()
    assert before.tether_pid is not None
    os.kill(before.tether_pid, signal.SIGKILL)
    eventually(lambda: manager.list_statuses()[0].pid not in (None, before.pid))
    eventually(lambda: not psutil.pid_exists(before.pid or 0))


def test_everything_is_restarted_after_a_killed_supervisord(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    marker = str(tmp_path / "marker")
    manager.start([python_program("host", WITH_CHILD.format(marker=marker)), python_program("two")])
    before = manager.list_pids()
    eventually(psutil.Process(before["host"]).children)
    [child] = psutil.Process(before["host"]).children()
    os.kill(before["manager"], signal.SIGKILL)
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in (*before.values(), child.pid)))
    manager.start([python_program("host", WITH_CHILD.format(marker=marker)), python_program("two")])
    assert set(manager.list_pids()) == set(before)


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_a_killed_keeper_ends_every_process(
    manager: ProcessManager,
    python_program: MakeProgram,
    eventually: Callable[..., None],
    list_remaining_processes: ListProcesses,
    paused: bool,
) -> None:
    program = python_program("one", environment={"FOLDER": str(manager.log_file("one").parent)})
    manager.start([program])
    pids = manager.list_pids()
    if paused:
        os.kill(pids["one"], signal.SIGSTOP)
    keeper = psutil.Process(pids["manager"]).ppid()
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: list_remaining_processes() == [])
    assert not manager.is_running()


def test_a_start_ends_paused_processes_of_a_killed_manager(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    [before] = manager.list_statuses()
    assert before.tether_pid is not None
    os.kill(before.tether_pid, signal.SIGSTOP)
    os.kill(psutil.Process(manager.list_pids()["manager"]).ppid(), signal.SIGKILL)
    eventually(lambda: not manager.is_running())
    manager.start([python_program("one")])
    for pid in (before.tether_pid, before.pid):  # init has yet to reap them
        eventually(lambda pid=pid: not psutil.pid_exists(pid))
    assert manager.list_statuses()[0].ready


def test_children_of_a_killed_program_end_with_it(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    manager.start([python_program("host", WITH_CHILD.format(marker=str(tmp_path)))])
    host = psutil.Process(manager.list_pids()["host"])
    eventually(host.children)
    [child] = host.children()
    host.kill()
    eventually(lambda: not child.is_running())


def test_an_orphan_of_a_program_is_ended(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
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
    eventually(lambda: "lost its parent" in manager.read_log_tail("forks"))
    eventually(lambda: not psutil.pid_exists(int((tmp_path / "orphan").read_text())))
    assert manager.list_statuses()[0].restarts == 0


def test_a_paused_program_is_stopped(manager: ProcessManager, python_program: MakeProgram) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    os.kill(manager.list_pids()["one"], signal.SIGSTOP)
    manager.stop()
    assert not manager.is_running()


@pytest.mark.parametrize("process_name", ["tether", "manager", "keeper"])
def test_a_manager_stops_while_one_of_its_processes_is_paused(
    manager: ProcessManager,
    python_program: MakeProgram,
    list_remaining_processes: ListProcesses,
    process_name: str,
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    [status] = manager.list_statuses()
    supervisord = manager.list_pids()["manager"]
    pids = {
        "tether": status.tether_pid,
        "manager": supervisord,
        "keeper": psutil.Process(supervisord).ppid(),
    }
    os.kill(pids[process_name] or 0, signal.SIGSTOP)
    manager.stop()
    assert not psutil.pid_exists(status.pid or 0)
    assert list_remaining_processes() == []


def test_a_hanging_manager_is_reported_and_replaced_by_a_start(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    before = manager.list_pids()
    os.kill(before["manager"], signal.SIGSTOP)
    with pytest.raises(ProcessManagerError, match=r"does not answer .* `make down` ends it"):
        manager.list_statuses()
    manager.start([python_program("one")])
    assert manager.list_pids()["manager"] != before["manager"]


def test_a_program_that_ignores_sigterm_is_killed(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("stubborn", IGNORES_SIGTERM, stop_seconds=0.5)])
    manager.stop()
    assert "ended by force" in manager.read_log_tail("stubborn")


def test_hanging_programs_stop_together_within_the_time_limit(
    manager: ProcessManager, python_program: MakeProgram, list_remaining_processes: ListProcesses
) -> None:
    stubborn = [
        python_program(f"stubborn-{n}", IGNORES_SIGTERM, stop_seconds=6, start_order=n) for n in range(4)
    ]
    manager.start([*stubborn, python_program("host", IGNORES_SIGTERM, stop_seconds=6, start_order=9)])
    host = next(status for status in manager.list_statuses() if status.name == "host")
    for pid in (host.pid, host.tether_pid):
        os.kill(pid or 0, signal.SIGSTOP)
    started = time.monotonic()
    manager.stop(6)
    assert time.monotonic() - started < 3 * 6, "stopped one after the other they take 50 s"
    assert list_remaining_processes() == []
