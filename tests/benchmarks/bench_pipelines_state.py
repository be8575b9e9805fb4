"""What a batch costs that touches 10,000 of N open windows, and how soon a stream with N of them goes on.

On the driver no Spark is needed: the fold, the files of the state and the journal are all that grows with N. With
`--executors` the same batches are folded there, which costs a job each. States are built by the engine itself,
batch by batch, with the merges of runs that this brings.
`python -m tests.benchmarks.bench_pipelines_state [--executors] [N …]`.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track
from rich.table import Table

from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, BatchInput
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.placement import DRIVER_ONLY, Placement
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.operators.compiled_stage import CompiledStage, compile_stage
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan import (
    AggregateOutput,
    Column,
    PaneLog,
    Plan,
    PlanSource,
    Stage,
    TopicOrigin,
    WatermarkStrategy,
)
from penstock.engine.plan.windows import Fixed
from penstock.engine.spark.aggregate.part_execution import SparkPartExecutor
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.stream import after_watermark, count, mean

JAR_FOLDER = Path(__file__).resolve().parents[2] / ".penstock" / "jars"
WINDOW_COUNTS = (100_000, 1_000_000, 5_000_000)
BUILD_BATCHES = 20
"""Batches in which a state is built, whatever its size: tables and journal are equally old then."""

TOUCHED_WINDOWS = 10_000
REPEATS = 15
BENCH_STAGE = Stage(
    "bench",
    ("readings",),
    Fixed(60_000),
    (AggregateOutput("readings", count()), AggregateOutput("temperature", mean("temperature"))),
    key=("device",),
    trigger=after_watermark(),
    lateness=3_600_000,
    sinks=(PaneLog("bench"),),
)
BENCH_COLUMNS = (Column("device", "BIGINT"), Column("at", "BIGINT"), Column("temperature", "DOUBLE"))
BENCH_SOURCE = PlanSource(
    "readings", TopicOrigin("readings"), BENCH_COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=600_000)
)
COLUMN_TYPES = {"device": pa.int64(), "at": pa.int64(), "temperature": pa.float64()}


class StubReading:
    """A batch that brings one record to each of some devices."""

    def __init__(self, stage: CompiledStage, devices: np.ndarray) -> None:
        self._stage = stage
        self._devices = devices

    def compute_partials(self) -> pa.Table:
        """A row for each device, as Spark would send it."""
        rows = len(self._devices)
        known = {
            "_topic": pa.array(["readings"] * rows),
            "_partition": pa.array(np.zeros(rows, np.int32)),
            "_fate": pa.nulls(rows, pa.string()),
            "_newest": pa.array(np.full(rows, 1_000)),
            "device": pa.array(self._devices),
            "window_start": pa.array(np.zeros(rows, np.int64)),
            "window_end": pa.array(np.full(rows, 60_000)),
            "temperature_sum": pa.array(np.full(rows, 0.5)),
        }
        ones = pa.array(np.ones(rows, np.int64))
        schema = pa.schema([*ACCOUNT_SCHEMA, *self._stage.partial_schema])
        return pa.table([known.get(field.name, ones) for field in schema], schema=schema)

    def read_invalid_records(self) -> pa.Table:
        """Not asked for: every record is good."""
        raise AssertionError

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Not asked for: no record is late."""
        raise AssertionError


class StateBench:
    """One stream over a folder."""

    def __init__(self, folder: Path, placement: Placement) -> None:
        self._folder = folder
        self._placement = placement
        self._stage = compile_stage(BENCH_STAGE, COLUMN_TYPES)
        self._read = 0
        self.engine = self.opened()

    def opened(self) -> BatchEngine:
        """An engine over the folder that has not resumed yet."""
        plan = Plan("bench", (BENCH_SOURCE,), (BENCH_STAGE,))
        graph = compile_graph(plan, {BENCH_STAGE.name: COLUMN_TYPES})
        tables = StreamTables(plan, graph, self._folder / "warehouse")
        right = WriteFence("bench", 1, lambda: True)
        directory = self._folder / "stream"
        rules = collect_watermark_rules([BENCH_SOURCE])
        return BatchEngine(
            graph, rules, directory, tables, right, lambda _: None, EngineOptions(placement=self._placement)
        )

    def batch(self, devices: np.ndarray) -> float:
        """Seconds for a batch with a record of each device."""
        span = OffsetRange("readings", 0, self._read, self._read + len(devices))
        self._read = span.end

        def read(_: BatchIntent) -> BatchInput:
            return StubReading(self._stage, devices)

        number = 0 if self.engine.last_outcome is None else self.engine.last_outcome.batch_id + 1
        began = time.perf_counter()
        self.engine.run_data_batch(number, 1_000_000 + number, (span,), read)
        return time.perf_counter() - began

    def build(self, windows: int) -> None:
        """Open so many windows."""
        parts = np.array_split(np.arange(windows), BUILD_BATCHES)
        for part in track(parts, f"{windows:,} windows", console=Console(stderr=True), transient=True):
            self.batch(part)

    def restarted(self) -> float:
        """Seconds from a new engine to the end of its first batch."""
        began = time.perf_counter()
        self.engine = self.opened()
        self.engine.resume()
        self.batch(np.arange(TOUCHED_WINDOWS))
        return time.perf_counter() - began


@contextlib.contextmanager
def choose_placement(*, executors: bool) -> Iterator[Placement]:
    """Where batches are folded: all on the driver, or all in the executors of a session of our own."""
    if not executors:
        yield DRIVER_ONLY
        return
    with tempfile.TemporaryDirectory() as scratch:
        session = open_spark_session(
            SparkSessionConfig(ensure_jars(JAR_FOLDER, ["spark"]), Path(scratch), java_home=find_java().home)
        )
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield Placement(0, SparkPartExecutor(session))
        finally:
            session.stop()


def main(sizes: list[int], *, executors: bool) -> None:
    """Measure each size, and print a table."""
    title = "in the executors" if executors else "on the driver"
    table = Table(
        "open windows",
        "a batch of 10,000",
        "of the least N",
        "restart and first batch",
        "on disk",
        title=title,
    )
    least = 0.0
    chance = np.random.default_rng(1)
    with choose_placement(executors=executors) as placement:
        for size in sizes:
            with tempfile.TemporaryDirectory() as scratch:
                bench = StateBench(Path(scratch), placement)
                bench.build(size)
                took = [
                    bench.batch(chance.choice(size, TOUCHED_WINDOWS, replace=False)) for _ in range(REPEATS)
                ]
                again = bench.restarted()
                held = sum(
                    path.stat().st_size for path in (Path(scratch) / "stream" / "state").rglob("run-*")
                )
            middle = statistics.median(took)
            least = least or middle
            spread = f"{middle * 1000:.0f} ms ({min(took) * 1000:.0f} to {max(took) * 1000:.0f})"
            on_disk = f"{held / 2**20:,.0f} MiB"
            table.add_row(f"{size:,}", spread, f"{middle / least:.2f}", f"{again:.2f} s", on_disk)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(WINDOW_COUNTS))
    parser.add_argument("--executors", action="store_true")
    chosen = parser.parse_args()
    main(chosen.sizes, executors=chosen.executors)
