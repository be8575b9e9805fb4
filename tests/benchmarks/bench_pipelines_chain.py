"""What later stages add to a batch: one stage, two and three over the same partials, in turns, without Spark.

Each batch brings a record of each of 10,000 devices; the second stage adds up the devices of a site, the third all
sites of an hour. `python -m tests.benchmarks.bench_pipelines_chain [BATCHES]`.
"""

import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_state import COLUMNS, SOURCE, STAGE, TOUCHED, TYPES, Bench

from penstock.pipelines.batch.engine import HERE, Engine, Right
from penstock.pipelines.batch.inputs import rules_of
from penstock.pipelines.batch.tables import StreamTables
from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.model import after_count, count, fixed, max_, repeatedly, sum_
from penstock.pipelines.plan import Output, OverArrow, PaneLog, Plan, Stage, opaque

EACH = repeatedly(after_count(1))
SITES = 100


def with_site(devices: pa.Table) -> pa.Table:
    """The site of a device, by its number."""
    device = devices.column("device")
    site = pc.subtract(device, pc.multiply(pc.divide(device, SITES), SITES))
    return devices.append_column("site", site)


FIRST = replace(STAGE, trigger=EACH, accumulation="retracting")
SECOND = Stage(
    "sites", ("bench",), fixed("1 minute"), (Output("readings", sum_("readings")), Output("devices", count())),
    (OverArrow(opaque(with_site)),), ("site",), EACH, FIRST.lateness, "retracting", sinks=(PaneLog("sites"),),
)  # fmt: skip
THIRD = Stage(
    "hours", ("sites",), fixed("1 hour"), (Output("readings", sum_("readings")), Output("most", max_("devices"))),
    (), (), EACH, FIRST.lateness, "retracting", sinks=(PaneLog("hours"),),
)  # fmt: skip
CHAINS = {"one stage": (FIRST,), "two stages": (FIRST, SECOND), "three stages": (FIRST, SECOND, THIRD)}


class Chain(Bench):
    """A stream of so many stages."""

    def __init__(self, folder: Path, stages: tuple[Stage, ...]) -> None:
        self._plan = Plan("bench", (SOURCE,), stages)
        super().__init__(folder, HERE)
        self._stage = ready_graph(self._plan, {self._plan.first.name: TYPES}).first

    def opened(self) -> Engine:
        """An engine over the folder that has not resumed yet."""
        graph = ready_graph(self._plan, {self._plan.first.name: TYPES})
        tables = StreamTables(self._plan, graph, self._folder / "warehouse")
        right = Right("bench", 1, lambda: True)
        return Engine(graph, rules_of([SOURCE]), self._folder / "stream", tables, right, lambda _: None)


def main(batches: int = 15) -> None:
    """Measure all in turns, and print a table."""
    assert COLUMNS
    with tempfile.TemporaryDirectory() as scratch:
        chains = {name: Chain(Path(scratch) / name, stages) for name, stages in CHAINS.items()}
        took: dict[str, list[float]] = {name: [] for name in chains}
        for number in range(batches + 3):
            for name, chain in chains.items():
                seconds = chain.batch(np.arange(TOUCHED))
                if number >= 3:
                    took[name].append(seconds)
    table = Table(
        "", "a batch of 10,000", "of one stage", title=f"{batches} batches: median (least to greatest)"
    )
    for name, all_of_it in took.items():
        shares = [mine / one for mine, one in zip(all_of_it, took["one stage"], strict=True)]
        spread = f"{min(all_of_it) * 1000:.0f} to {max(all_of_it) * 1000:.0f}"
        share = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        table.add_row(name, f"{statistics.median(all_of_it) * 1000:.0f} ms ({spread})", share)
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
