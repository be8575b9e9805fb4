"""What later stages add to a batch: one stage, two and three over the same records, in turns.

Each batch brings a record of each of 10,000 devices; the second stage adds up the devices of a site, the third all
sites of an hour. Streams read a topic of a real broker as fast as they can, and a batch is the time from one commit
to the next. `--without-spark` measures what stages do with partials that are there already.
`python -m tests.benchmarks.bench_pipelines_chain [--batches N] [--repeats N] [--without-spark]`.
"""

import argparse
import statistics
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table
from tests.benchmarks import rivals
from tests.benchmarks.bench_pipelines_state import SOURCE, STAGE, TOUCHED, TYPES, Bench
from tests.benchmarks.rivals import Ours, Scene, load, scene, until_read

from penstock.pipelines.batch.engine import Engine
from penstock.pipelines.batch.inputs import rules_of
from penstock.pipelines.batch.placement import HERE
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.tables import StreamTables
from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.model import after_count, count, fixed, max_, repeatedly, sum_
from penstock.pipelines.plan import Output, OverArrow, PaneLog, Plan, Stage, opaque

EACH = repeatedly(after_count(1))
SITES = 100
TOPIC = "devices"
SETTLING = 5
"""Batches at the beginning that are not counted."""


def with_site(devices: pa.Table) -> pa.Table:
    """The site of a device, by its number."""
    device = devices.column("device")
    if pa.types.is_string(device.type):
        device = pc.cast(pc.utf8_slice_codeunits(device, 1), pa.int64())
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


def without_spark(batches: int) -> dict[str, list[float]]:
    """Seconds of batches whose partials are there already."""
    took: dict[str, list[float]] = {name: [] for name in CHAINS}
    with tempfile.TemporaryDirectory() as scratch:
        chains = {name: Chain(Path(scratch) / name, stages) for name, stages in CHAINS.items()}
        for number in range(batches + SETTLING):
            for name, chain in chains.items():
                seconds = chain.batch(np.arange(TOUCHED))
                if number >= SETTLING:
                    took[name].append(seconds)
    return took


def whole(batches: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of whole batches: the median of each run over the topic, after a run that is not counted."""
    took: dict[str, list[float]] = {name: [] for name in CHAINS}
    with scene() as one:
        one.broker.create_topic(TOPIC, 2)
        load(one.broker.bootstrap, TOPIC, 0, (batches + SETTLING) * TOUCHED, keys=TOUCHED).wait()
        for number in range(repeats + 1):
            for name, stages in CHAINS.items():
                seconds = between_commits(one, stages, batches)
                if number:
                    took[name].append(seconds)
    return took


def between_commits(one: Scene, stages: tuple[Stage, ...], batches: int) -> float:
    """How long a batch of a stream takes that has more to read than it may take at once."""
    plan = rivals.plan_over(TOPIC, fixed("1 minute"))
    first = replace(stages[0], inputs=(TOPIC,), aggregates=plan.stage.aggregates)
    stream = Ours(one, replace(plan, stages=(first, *stages[1:])), TOUCHED)
    stream.start()
    until_read(stream, (batches + SETTLING) * TOUCHED)
    stream.stop()
    times = [time for time, _ in stream.committed][-batches:]
    return statistics.median(after - before for before, after in pairwise(times))


def main(batches: int, repeats: int, *, bare: bool) -> None:
    """Measure all in turns, and print a table."""
    took = without_spark(batches) if bare else whole(batches, repeats)
    count_of = f"{batches} batches" if bare else f"{repeats} runs of {batches} batches"
    table = Table(
        "", f"a batch of {TOUCHED:,}", "of one stage", title=f"{count_of}: median (least to greatest)"
    )
    for name, all_of_it in took.items():
        shares = [mine / one for mine, one in zip(all_of_it, took["one stage"], strict=True)]
        spread = f"{min(all_of_it) * 1000:.0f} to {max(all_of_it) * 1000:.0f}"
        share = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        table.add_row(name, f"{statistics.median(all_of_it) * 1000:.0f} ms ({spread})", share)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-spark", action="store_true")
    chosen = parser.parse_args()
    main(chosen.batches, chosen.repeats, bare=chosen.without_spark)
