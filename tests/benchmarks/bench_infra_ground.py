"""Measures jars, broker, process manager and bootstrap. `python tests/benchmarks/bench_infra_ground.py`.

Downloading the jars needs a network.
"""

import argparse
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


def print_timing(name: str, action: Callable[[], object]) -> None:
    started = time.perf_counter()
    action()
    print(f"{name:<62} {time.perf_counter() - started:8.2f} s")


def measure_jars(folder: Path) -> list[Path]:
    print_timing("jars: download all", lambda: ensure_jars(folder))
    print_timing("jars: verify all", lambda: ensure_jars(folder))
    return ensure_jars(folder, ["kafka"])


def measure_broker(folder: Path, kafka_jars: list[Path]) -> None:
    broker = LocalBroker.in_directory(folder, kafka_jars)
    print_timing("broker: format storage", lambda: format_storage(broker.config, kafka_jars))
    print_timing("broker: start until it answers a client", broker.start)
    print(f"{'broker: resident memory':<62} {psutil.Process(broker.pid).memory_info().rss / 1e6:8.0f} MB")
    broker.kill()
    print_timing("broker: start after SIGKILL until it answers a client", broker.start)
    print_timing("broker: stop", broker.stop)


def measure_manager(folder: Path) -> None:
    command = (sys.executable, "-c", "import signal; signal.pause()")
    programs = [Program(f"idle-{number}", command) for number in range(PROGRAM_COUNT)]
    manager = ProcessManager(folder / "run", folder / "logs")
    try:
        print_timing(
            f"manager: start {PROGRAM_COUNT} programs until each has run for 1 s",
            lambda: manager.start(programs),
        )
        print_timing("manager: start with all programs running", lambda: manager.start(programs))
        print_timing("manager: status", manager.list_statuses)
        measure_idle(manager)
        pid = manager.list_pids()["idle-0"]
        os.kill(pid, signal.SIGKILL)
        print_timing(
            "manager: SIGKILL of a program until it runs again", lambda: _wait_for_restart(manager, pid)
        )
        print_timing("manager: stop", manager.stop)
    finally:
        manager.stop()


def measure_idle(manager: ProcessManager) -> None:
    supervisord = psutil.Process(manager.list_pids()["manager"])
    programs = set(manager.list_pids().values()) - {supervisord.pid}
    family = [supervisord.parent(), supervisord, *supervisord.children(recursive=True)]
    managers = [process for process in family if process is not None and process.pid not in programs]
    cpu_before_s = sum(sum(process.cpu_times()[:2]) for process in managers)
    time.sleep(IDLE_SECONDS)
    used_s = sum(sum(process.cpu_times()[:2]) for process in managers) - cpu_before_s
    memory = sum(process.memory_full_info().uss for process in managers) / 1e6
    share = 100 * used_s / IDLE_SECONDS
    print(f"{f'manager: {len(managers)} own processes when idle, CPU of one core':<62} {share:8.2f} %")
    print(f"{'manager: unshared memory of its own processes':<62} {memory:8.0f} MB")


def _wait_for_restart(manager: ProcessManager, pid: int) -> None:
    wait_until(lambda: manager.list_pids().get("idle-0") not in (None, pid), 30, "the program to run again")


def measure_bootstrap() -> None:
    command = [sys.executable, str(ROOT / "infra" / "bootstrap.py"), "dev"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print_timing("bootstrap: everything installed", lambda: subprocess.run(command, check=True))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure_broker(Path(temporary, "broker"), measure_jars(Path(temporary, "jars")))
        measure_manager(Path(temporary, "manager"))
    measure_bootstrap()
