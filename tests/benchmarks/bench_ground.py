"""What a person waits for: the first row from nothing, the first new row after a restart, and what rest costs.

It clones this checkout into a scratch folder with ports of its own, says `make up`, waits for rows of the log of
panes, says `make down` and `make up` again, and lastly stops the feed and reads the processor time of the stream
host. `python tests/benchmarks/bench_ground.py [--cold]`; with `--cold` no package that an earlier installation kept
is used, which needs the network.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from rich.console import Console
from rich.table import Table

from penstock.infra.ports import free_ports

PORTS = ("KAFKA__PORT", "KAFKA__CONTROLLER_PORT", "HOST__METRICS_PORT", "DAGSTER__PORT", "DAGSTER__CODE_PORT")
ROOT = Path(__file__).resolve().parents[2]
REST_SECONDS = 30.0
PATIENCE_SECONDS = 600.0


def seconds(what: Callable[[], object]) -> float:
    """How long something took."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def versions(clone: Path) -> int:
    """How often rows were added to the log of panes; 0 while there is none."""
    try:
        return DeltaTable(clone / ".penstock" / "warehouse" / "panes" / "sensor_minute").version()
    except TableNotFoundError:
        return 0


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, a tenth of a second at a time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing came in {PATIENCE_SECONDS:g} s")
        time.sleep(0.1)


class Checkout:
    """A clone that runs the platform on ports of its own."""

    def __init__(self, folder: Path, cold: bool) -> None:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        self.folder = folder
        ports = {
            f"PENSTOCK_{name}": str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)
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
        before = versions(self.folder)
        maker = subprocess.Popen(
            ["make", "up"], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL
        )
        taken = seconds(lambda: until(lambda: versions(self.folder) > before))
        if maker.wait() != 0:
            raise RuntimeError("`make up` failed")
        return taken


def host_processes() -> list[psutil.Process]:
    """The stream host of this benchmark, with its Java machine: children of what runs `host run`."""
    hosts = [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[-2:] == ["host", "run"]]
    return [each for host in hosts for each in (host, *host.children(recursive=True))]


def share_of_a_core(folder: Path) -> float:
    """The processor time that the host takes on a silent topic, as a share of one core."""
    mine = [p for p in host_processes() if str(folder) in " ".join(p.cmdline())]
    before = sum(sum(p.cpu_times()[:2]) for p in mine)
    time.sleep(REST_SECONDS)
    return (sum(sum(p.cpu_times()[:2]) for p in mine) - before) / REST_SECONDS


def main(cold: bool) -> None:
    """Measure, and print a table."""
    table = Table("what", "took", "limit", title="The ground, on this machine")
    with tempfile.TemporaryDirectory() as scratch:
        checkout = Checkout(Path(scratch) / "penstock", cold)
        try:
            first = checkout.up_to_a_new_row()
            table.add_row(
                f"clone to first row, {'cold' if cold else 'warm'} caches", f"{first:.1f} s", "240 s"
            )
            table.add_row(
                "`make up` that has nothing to do", f"{seconds(lambda: checkout.make('up')):.1f} s", ""
            )
            table.add_row("`make down`", f"{seconds(lambda: checkout.make('down')):.1f} s", "20 s")
            table.add_row("second `make up` to first new row", f"{checkout.up_to_a_new_row():.1f} s", "30 s")
            checkout.environment["PENSTOCK_FEED__ENABLED"] = "false"
            checkout.make("up")
            until(lambda: '"lag_records": 0' in checkout.penstock("status", "--json"))
            time.sleep(REST_SECONDS)
            share = share_of_a_core(checkout.folder)
            table.add_row("host at rest on a silent topic", f"{share:.1%} of a core", "5 %")
        finally:
            checkout.make("down")
    Console().print(table)


if __name__ == "__main__":
    main(cold="--cold" in sys.argv[1:])
