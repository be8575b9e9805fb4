"""Measures the cost of downstream stages: one, two and three stages over the same records, in turns.

Each batch holds a record of each of 10,000 devices. The second stage aggregates the devices of a site, the third
all sites of an hour. Streams read a topic of a real broker as fast as they can, and the time of a batch runs from
one commit to the next. `--without-spark` measures only the stages, over prepared partials. `python -m
tests.benchmarks.bench_pipelines_chain [--batches N] [--repeats N] [--without-spark]`.
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
from tests.benchmarks.bench_pipelines_state import (
    BENCH_SOURCE,
    BENCH_STAGE,
    COLUMN_TYPES,
    TOUCHED_WINDOWS,
    StateBench,
)
from tests.benchmarks.rivals import BenchScene, EngineRival, open_scene, start_load, wait_until_read

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.placement import DRIVER_ONLY
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ArrowStep
from penstock.engine.sinks.pane_log import PaneLog
from penstock.stream import after_count, count, fixed, max_, repeatedly, sum_

EVERY_RECORD = repeatedly(after_count(1))
SITE_COUNT = 100
DEVICES_TOPIC = "devices"
WARM_UP_BATCHES = 5
"""Batches at the start that are not counted."""


def add_site_column(devices: pa.Table) -> pa.Table:
    """Add the site of each device, by its number."""
    device = devices.column("device")
    if pa.types.is_string(device.type):
        device = pc.cast(pc.utf8_slice_codeunits(device, 1), pa.int64())
    site = pc.subtract(device, pc.multiply(pc.divide(device, SITE_COUNT), SITE_COUNT))
    return devices.append_column("site", site)


FIRST_STAGE = replace(BENCH_STAGE, trigger=EVERY_RECORD, accumulation="retracting")
SECOND_STAGE = Stage(
    "sites", ("bench",), fixed("1 minute"),
    (AggregateOutput("readings", sum_("readings")), AggregateOutput("devices", count())),
    (ArrowStep(function_ref(add_site_column)),), ("site",), EVERY_RECORD, FIRST_STAGE.lateness, "retracting",
    sinks=(PaneLog("sites"),),
)  # fmt: skip
THIRD_STAGE = Stage(
    "hours", ("sites",), fixed("1 hour"),
    (AggregateOutput("readings", sum_("readings")), AggregateOutput("most", max_("devices"))),
    (), (), EVERY_RECORD, FIRST_STAGE.lateness, "retracting", sinks=(PaneLog("hours"),),
)  # fmt: skip
STAGE_CHAINS = {
    "one stage": (FIRST_STAGE,),
    "two stages": (FIRST_STAGE, SECOND_STAGE),
    "three stages": (FIRST_STAGE, SECOND_STAGE, THIRD_STAGE),
}


class ChainBench(StateBench):
    """A stream of these stages."""

    def __init__(self, folder: Path, stages: tuple[Stage, ...]) -> None:
        self._plan = Plan("bench", (BENCH_SOURCE,), stages)
        super().__init__(folder, DRIVER_ONLY)
        self._stage = compile_graph(
            self._plan, {self._plan.first_source_stage.name: COLUMN_TYPES}
        ).first_record_stage

    def open_engine(self) -> BatchEngine:
        """Return an engine over the folder that has not resumed yet."""
        graph = compile_graph(self._plan, {self._plan.first_source_stage.name: COLUMN_TYPES})
        tables = StreamTables(self._plan, graph, self._folder / "warehouse")
        fence = WriteFence("bench", 1, lambda: True)
        return BatchEngine(
            graph,
            collect_watermark_rules([BENCH_SOURCE]),
            self._folder / "stream",
            tables,
            fence,
            lambda _: None,
        )


def measure_without_spark(batches: int) -> dict[str, list[float]]:
    """Return the seconds of batches over prepared partials."""
    durations: dict[str, list[float]] = {name: [] for name in STAGE_CHAINS}
    with tempfile.TemporaryDirectory() as scratch:
        chains = {name: ChainBench(Path(scratch) / name, stages) for name, stages in STAGE_CHAINS.items()}
        for number in range(batches + WARM_UP_BATCHES):
            for name, chain in chains.items():
                seconds = chain.batch(np.arange(TOUCHED_WINDOWS))
                if number >= WARM_UP_BATCHES:
                    durations[name].append(seconds)
    return durations


def measure_with_spark(batches: int, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of whole batches: the median of each run over the topic, after a warm-up run."""
    durations: dict[str, list[float]] = {name: [] for name in STAGE_CHAINS}
    with open_scene() as scene:
        scene.broker.create_topic(DEVICES_TOPIC, 2)
        start_load(
            scene.broker.bootstrap,
            DEVICES_TOPIC,
            0,
            (batches + WARM_UP_BATCHES) * TOUCHED_WINDOWS,
            keys=TOUCHED_WINDOWS,
        ).wait()
        for number in range(repeats + 1):
            for name, stages in STAGE_CHAINS.items():
                seconds = measure_commit_interval(scene, stages, batches)
                if number:
                    durations[name].append(seconds)
    return durations


def measure_commit_interval(scene: BenchScene, stages: tuple[Stage, ...], batches: int) -> float:
    """Return the seconds of a batch of a stream that is behind its topic."""
    plan = rivals.plan_mean_by_device(DEVICES_TOPIC, fixed("1 minute"))
    first = replace(stages[0], inputs=(DEVICES_TOPIC,), aggregates=plan.only_stage.aggregates)
    stream = EngineRival(scene, replace(plan, stages=(first, *stages[1:])), TOUCHED_WINDOWS)
    stream.start()
    wait_until_read(stream, (batches + WARM_UP_BATCHES) * TOUCHED_WINDOWS)
    stream.stop()
    times = [time for time, _ in stream.committed][-batches:]
    return statistics.median(after - before for before, after in pairwise(times))


def main(batches: int, repeats: int, *, without_spark: bool) -> None:
    """Measure all in turns, and print a table."""
    durations = measure_without_spark(batches) if without_spark else measure_with_spark(batches, repeats)
    runs = f"{batches} batches" if without_spark else f"{repeats} runs of {batches} batches"
    table = Table(
        "chain", f"batch of {TOUCHED_WINDOWS:,}", "of one stage", title=f"{runs}: median (min to max)"
    )
    for name, seconds in durations.items():
        shares = [chain / single for chain, single in zip(seconds, durations["one stage"], strict=True)]
        spread = f"{min(seconds) * 1000:.0f} to {max(seconds) * 1000:.0f}"
        share = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        table.add_row(name, f"{statistics.median(seconds) * 1000:.0f} ms ({spread})", share)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=30, help="measured batches")
    parser.add_argument("--repeats", type=int, default=5, help="runs over the topic")
    parser.add_argument(
        "--without-spark", action="store_true", help="measure only the processing of the stages"
    )
    arguments = parser.parse_args()
    main(arguments.batches, arguments.repeats, without_spark=arguments.without_spark)
