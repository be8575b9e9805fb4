"""Measures jars, broker, process manager and bootstrap. `python tests/benchmarks/bench_infra_ground.py`.

Fetching the jars needs a network; everything else stays on this machine.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from penstock.core.waiting import wait_until
from penstock.infra.broker import format_storage
from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.infra.processes import ProcessManager, Program

ROOT = Path(__file__).resolve().parents[2]
PROGRAM_COUNT = 7
IDLE_SECONDS = 20


def print_timing(what: str, action: Callable[[], object]) -> None:
    started = time.perf_counter()
    action()
    print(f"{what:<62} {time.perf_counter() - started:8.2f} s")


def measure_jars(folder: Path) -> list[Path]:
    print_timing("jars: fetch all 57 from the repository", lambda: ensure_jars(folder))
    print_timing("jars: check all 57", lambda: ensure_jars(folder))
    return ensure_jars(folder, ["kafka"])


def measure_broker(folder: Path, kafka_jars: list[Path]) -> None:
    made = LocalBroker.in_directory(folder, kafka_jars)
    print_timing("broker: prepare its folder", lambda: format_storage(made.config, kafka_jars))
    print_timing("broker: start until a client is answered", made.start)
    print(f"{'broker: resident':<62} {psutil.Process(made.pid).memory_info().rss / 1e6:8.0f} MB")
    made.kill()
    print_timing("broker: start after SIGKILL until a client is answered", made.start)
    print_timing("broker: stop", made.stop)


def measure_manager(folder: Path) -> None:
    command = (sys.executable, "-c", "import signal; signal.pause()")
    programs = [Program(f"idle-{number}", command) for number in range(PROGRAM_COUNT)]
    made = ProcessManager(folder / "run", folder / "logs")
    try:
        print_timing(
            f"manager: start {PROGRAM_COUNT} programs until each has run for 1 s",
            lambda: made.start(programs),
        )
        print_timing("manager: start again", lambda: made.start(programs))
        print_timing("manager: status", made.list_statuses)
        measure_idle(made)
        pid = made.list_pids()["idle-0"]
        os.kill(pid, signal.SIGKILL)
        print_timing(
            "manager: SIGKILL of a program until it runs again", lambda: _wait_for_restart(made, pid)
        )
        print_timing("manager: stop", made.stop)
    finally:
        made.stop()


def measure_idle(made: ProcessManager) -> None:
    supervisord = psutil.Process(made.list_pids()["manager"])
    programs = set(made.list_pids().values()) - {supervisord.pid}
    family = [supervisord.parent(), supervisord, *supervisord.children(recursive=True)]
    keepers = [process for process in family if process is not None and process.pid not in programs]
    before = sum(sum(process.cpu_times()[:2]) for process in keepers)
    time.sleep(IDLE_SECONDS)
    used = sum(sum(process.cpu_times()[:2]) for process in keepers) - before
    memory = sum(process.memory_full_info().uss for process in keepers) / 1e6
    share = 100 * used / IDLE_SECONDS
    print(f"{f'manager: {len(keepers)} keeping processes at rest, of one core':<62} {share:8.2f} %")
    print(f"{'manager: memory of these, unshared':<62} {memory:8.0f} MB")


def _wait_for_restart(made: ProcessManager, pid: int) -> None:
    wait_until(lambda: made.list_pids().get("idle-0") not in (None, pid), 30, "the program to run again")


def measure_bootstrap() -> None:
    command = [sys.executable, str(ROOT / "infra" / "bootstrap.py"), "dev"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print_timing("bootstrap: nothing left to do", lambda: subprocess.run(command, check=True))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        measure_broker(Path(temporary, "broker"), measure_jars(Path(temporary, "jars")))
        measure_manager(Path(temporary, "manager"))
    measure_bootstrap()
