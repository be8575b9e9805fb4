"""Measures starts: the first row of a new clone, the first new row after a restart, and the idle load.

It clones this checkout into a scratch folder with ports of its own, says `make up`, waits for rows of the log of
panes, says `make down` and `make up` again, and reads the processor time of the stream host while records flow and,
lastly, with the feed stopped. `python tests/benchmarks/bench_ground.py [--cold]`; with `--cold` no package that an
earlier installation kept is used, which needs the network.
"""

import os
import subprocess
import sys
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
    "DAGSTER__PORT",
    "DAGSTER__CODE_PORT",
)
ROOT = Path(__file__).resolve().parents[2]
IDLE_SECONDS = 30.0
WAIT_TIMEOUT_S = 600.0


def time_action(what: Callable[[], object]) -> float:
    """Return the seconds of an action."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def read_table_version(clone: Path) -> int:
    """Return the version of the pane log; 0 while there is none."""
    try:
        return DeltaTable(clone / ".penstock" / "warehouse" / "panes" / "sensor_minute").version()
    except TableNotFoundError:
        return 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for a condition, polling ten times a second."""
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing came in {WAIT_TIMEOUT_S:g} s")
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
        """Say `make TARGET`."""
        subprocess.run(
            ["make", target], cwd=self.folder, env=self.environment, check=True, capture_output=True
        )

    def penstock(self, *words: str) -> str:
        """Say `penstock …`."""
        command = [str(self.folder / ".venv" / "bin" / "penstock"), *words]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def up_to_a_new_row(self) -> float:
        """Seconds from `make up` until the log of panes has a row that it had not before."""
        before = read_table_version(self.folder)
        maker = subprocess.Popen(
            ["make", "up"], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL
        )
        taken = time_action(lambda: wait_for(lambda: read_table_version(self.folder) > before))
        if maker.wait() != 0:
            raise RuntimeError("`make up` failed")
        return taken


def find_host_processes(folder: Path) -> list[psutil.Process]:
    """Find the stream host of this benchmark and its JVM."""
    of_folder = [
        p for p in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or [])
    ]
    (host,) = [p for p in of_folder if p.info["cmdline"][-2:] == ["host", "run"]]
    return [host, *host.children(recursive=True)]


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Return the processor time of the processes; ended ones count no more."""
    taken = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            taken += sum(process.cpu_times()[:2])
    return taken


def measure_core_share(folder: Path) -> float:
    """Return the processor time of the host as a share of one core."""
    mine = find_host_processes(folder)
    before = cpu_seconds(mine)
    time.sleep(IDLE_SECONDS)
    return (cpu_seconds(mine) - before) / IDLE_SECONDS


def measure_all(checkout: BenchmarkCheckout, cold: bool) -> Iterator[tuple[str, str, str]]:
    """What was measured, what came out, and the limit; in the order in which a person meets them."""
    caches = "cold" if cold else "warm"
    yield f"clone to first row, {caches} caches", f"{checkout.up_to_a_new_row():.1f} s", "240 s"
    yield "`make up` that has nothing to do", f"{time_action(lambda: checkout.make('up')):.1f} s", ""
    yield "host with 50 records a second", f"{measure_core_share(checkout.folder):.1%} of a core", ""
    yield "`make down`", f"{time_action(lambda: checkout.make('down')):.1f} s", "20 s"
    yield "second `make up` to first new row", f"{checkout.up_to_a_new_row():.1f} s", "30 s"
    checkout.environment["PENSTOCK_FEED__ENABLED"] = "false"
    checkout.make("up")
    wait_for(lambda: '"lag_records": 0' in checkout.penstock("status", "--json"))
    time.sleep(IDLE_SECONDS)
    yield "host at rest on a silent topic", f"{measure_core_share(checkout.folder):.1%} of a core", "5 %"


def main(cold: bool) -> None:
    """Measure, print each figure as it comes, and a table of all."""
    table = Table("what", "took", "limit", title="The ground, on this machine")
    console = Console()
    with tempfile.TemporaryDirectory() as scratch:
        checkout = BenchmarkCheckout(Path(scratch) / "penstock", cold)
        try:
            for what, took, limit in measure_all(checkout, cold):
                console.print(f"{what}: {took}")
                table.add_row(what, took, limit)
        finally:
            checkout.make("down")
    console.print(table)


if __name__ == "__main__":
    main(cold="--cold" in sys.argv[1:])
