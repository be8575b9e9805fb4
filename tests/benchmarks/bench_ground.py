"""Measures the start of the platform: first row of a new clone, first new row after a restart, and idle load.

The benchmark clones this checkout into a scratch folder with its own ports. It runs `make up`, waits for rows of
the pane log, and runs `make down` and `make up` again. It measures the CPU time of the stream host with the feed
and without it. `python tests/benchmarks/bench_ground.py [--cold]`; `--cold` uses no package cache and needs a
network.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from rich.console import Console
from rich.table import Table

from penstock.infra.ports import find_free_ports

PORT_SETTINGS = (
    "KAFKA__PORT",
    "KAFKA__CONTROLLER_PORT",
    "HOST__METRICS_PORT",
    "CONSOLE__PORT",
    "DAGSTER__PORT",
    "DAGSTER__CODE_PORT",
)
ROOT = Path(__file__).resolve().parents[2]
IDLE_SECONDS = 30.0
WAIT_TIMEOUT_S = 600.0


def time_action(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def read_table_version(clone: Path) -> int:
    """Return the version of the pane log, or 0 if it does not exist yet."""
    try:
        return DeltaTable(clone / ".penstock" / "warehouse" / "panes" / "sensor_minute").version()
    except TableNotFoundError:
        return 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for a condition, polling ten times a second."""
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the condition was not met within {WAIT_TIMEOUT_S:g} s")
        time.sleep(0.1)


class BenchmarkCheckout:
    """A clone that runs the platform on its own ports."""

    def __init__(self, folder: Path, cold: bool) -> None:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        self.folder = folder
        ports = {
            f"PENSTOCK_{name}": str(port)
            for name, port in zip(PORT_SETTINGS, find_free_ports(len(PORT_SETTINGS)), strict=True)
        }
        caches = {"PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"} if cold else {}
        self.environment = {**os.environ, **ports, **caches}
        self.environment.pop("VIRTUAL_ENV", None)

    def make(self, target: str) -> None:
        """Run `make TARGET`."""
        subprocess.run(
            ["make", target], cwd=self.folder, env=self.environment, check=True, capture_output=True
        )

    def penstock(self, *words: str) -> str:
        """Run a command of `penstock`, and return its output."""
        command = [str(self.folder / ".venv" / "bin" / "penstock"), *words]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def time_up_to_new_row(self) -> float:
        """Return the seconds from `make up` until the pane log has a new version."""
        before = read_table_version(self.folder)
        make_up = subprocess.Popen(
            ["make", "up"], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL
        )
        seconds = time_action(lambda: wait_for(lambda: read_table_version(self.folder) > before))
        if make_up.wait() != 0:
            raise RuntimeError("`make up` failed")
        return seconds


def find_host_processes(folder: Path) -> list[psutil.Process]:
    """Find the stream host of this benchmark and its JVM."""
    processes = [
        p for p in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or [])
    ]
    (host,) = [p for p in processes if p.info["cmdline"][-2:] == ["host", "run"]]
    return [host, *host.children(recursive=True)]


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Return the CPU seconds of the processes that are alive."""
    seconds = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            seconds += sum(process.cpu_times()[:2])
    return seconds


def measure_core_share(folder: Path) -> float:
    """Return the CPU time of the stream host as a share of one core."""
    processes = find_host_processes(folder)
    cpu_before_s = cpu_seconds(processes)
    time.sleep(IDLE_SECONDS)
    return (cpu_seconds(processes) - cpu_before_s) / IDLE_SECONDS


def measure_all(checkout: BenchmarkCheckout, cold: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the value and the limit of each measurement, in the order of first use."""
    caches = "cold" if cold else "warm"
    yield (
        f"`make up` of a new clone to first row, {caches} caches",
        f"{checkout.time_up_to_new_row():.1f} s",
        "240 s",
    )
    yield "`make up` without changes", f"{time_action(lambda: checkout.make('up')):.1f} s", ""
    yield "host CPU at 50 records/s", f"{measure_core_share(checkout.folder):.1%} of a core", ""
    yield "`make down`", f"{time_action(lambda: checkout.make('down')):.1f} s", "20 s"
    yield "second `make up` to first new row", f"{checkout.time_up_to_new_row():.1f} s", "30 s"
    checkout.environment["PENSTOCK_FEED__ENABLED"] = "false"
    checkout.make("up")
    wait_for(lambda: '"lag_records": 0' in checkout.penstock("status", "--json"))
    time.sleep(IDLE_SECONDS)
    yield "host CPU without records", f"{measure_core_share(checkout.folder):.1%} of a core", "5 %"


def main(cold: bool) -> None:
    """Run every measurement; print each result when it is ready, and all in a table."""
    table = Table("measurement", "value", "limit", title="Start and idle load")
    console = Console()
    with tempfile.TemporaryDirectory() as scratch:
        checkout = BenchmarkCheckout(Path(scratch) / "penstock", cold)
        try:
            for name, value, limit in measure_all(checkout, cold):
                console.print(f"{name}: {value}")
                table.add_row(name, value, limit)
        finally:
            checkout.make("down")
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", action="store_true", help="use no package cache; needs a network")
    arguments = parser.parse_args()
    main(arguments.cold)
