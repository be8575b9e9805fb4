"""The process manager with real processes that are killed, paused or deaf: what comes back, and what ends."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.infra.keeping import Left, MakeProgram

from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes import ProcessManager

pytestmark = pytest.mark.whole

WITH_CHILD = """
import subprocess, sys, signal
subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()', {marker!r}])
signal.pause()
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()"


def test_a_killed_program_comes_back(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    pid = manager.list_pids()["one"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: manager.list_pids().get("one") not in (None, pid))
    [status] = manager.list_statuses()
    assert (status.restarts, status.failures) == (1, 1)
    assert "ended by SIGKILL" in manager.read_log_tail("one")


def test_a_killed_tether_comes_back_and_takes_its_program_with_it(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    [before] = manager.list_statuses()
    assert before.tether_pid is not None
    os.kill(before.tether_pid, signal.SIGKILL)
    eventually(lambda: manager.list_statuses()[0].pid not in (None, before.pid))
    eventually(lambda: not psutil.pid_exists(before.pid or 0))


def test_a_killed_supervisord_comes_back_with_everything(
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
def test_when_the_keeper_of_the_manager_is_killed_everything_ends(
    manager: ProcessManager,
    python_program: MakeProgram,
    eventually: Callable[..., None],
    left: Left,
    paused: bool,
) -> None:
    program = python_program("one", environment={"FOLDER": str(manager.log_file("one").parent)})
    manager.start([program])
    pids = manager.list_pids()
    if paused:
        os.kill(pids["one"], signal.SIGSTOP)
    keeper = psutil.Process(pids["manager"]).ppid()
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: left() == [])
    assert not manager.is_running()


def test_a_start_clears_what_a_killed_manager_left_paused(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    manager.start([python_program("one")])
    [before] = manager.list_statuses()
    assert before.tether_pid is not None
    os.kill(before.tether_pid, signal.SIGSTOP)
    os.kill(psutil.Process(manager.list_pids()["manager"]).ppid(), signal.SIGKILL)
    eventually(lambda: not manager.is_running())
    manager.start([python_program("one")])
    for pid in (before.tether_pid, before.pid):  # whose parent is gone, and another has yet to take notice
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


def test_a_process_whose_parent_ended_is_ended(
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


def test_a_paused_program_is_stopped_all_the_same(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    os.kill(manager.list_pids()["one"], signal.SIGSTOP)
    manager.stop()
    assert not manager.is_running()


@pytest.mark.parametrize("who", ["tether", "manager", "keeper"])
def test_a_paused_part_of_the_manager_does_not_keep_it_from_ending(
    manager: ProcessManager, python_program: MakeProgram, left: Left, who: str
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    [status] = manager.list_statuses()
    supervisord = manager.list_pids()["manager"]
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
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("one", stop_seconds=1)])
    before = manager.list_pids()
    os.kill(before["manager"], signal.SIGSTOP)
    with pytest.raises(ProcessManagerError, match=r"does not answer .* `make down` ends it"):
        manager.list_statuses()
    manager.start([python_program("one")])
    assert manager.list_pids()["manager"] != before["manager"]


def test_a_program_that_does_not_heed_its_signal_is_ended_by_force(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    manager.start([python_program("deaf", DEAF, stop_seconds=0.5)])
    manager.stop()
    assert "ended by force" in manager.read_log_tail("deaf")


def test_all_together_stop_within_the_time_there_is_whatever_hangs(
    manager: ProcessManager, python_program: MakeProgram, left: Left
) -> None:
    deaf = [python_program(f"deaf-{n}", DEAF, stop_seconds=6, start_order=n) for n in range(4)]
    manager.start([*deaf, python_program("host", DEAF, stop_seconds=6, start_order=9)])
    host = next(status for status in manager.list_statuses() if status.name == "host")
    for pid in (host.pid, host.tether_pid):
        os.kill(pid or 0, signal.SIGSTOP)
    began = time.monotonic()
    manager.stop(6)
    assert time.monotonic() - began < 3 * 6, "one after the other they would take 50 s"
    assert left() == []
