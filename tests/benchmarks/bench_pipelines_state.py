"""Measures a batch that touches 10,000 of N open windows, and the restart of a stream with N open windows.

On the driver, the benchmark does not start Spark, because only the processing, the state files and the
journal depend on N.
With `--executors`, Spark processes the same batches in its executors, with one job each. `python -m
tests.benchmarks.bench_pipelines_state [--executors] [N …]`.
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

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.placement import DRIVER_ONLY, Placement
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.aggregate.part_execution import SparkPartExecutor
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.engine.windows.fixed import Fixed
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.stream import after_watermark, count, mean

JAR_FOLDER = Path(__file__).resolve().parents[2] / ".penstock" / "jars"
WINDOW_COUNTS = (100_000, 1_000_000, 5_000_000)
BUILD_BATCHES = 20
"""The batches that build a state of any size, so that tables and journal have equally many versions."""

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


class StubBatchInput:
    """The input of a batch with one record for each of some devices."""

    def __init__(self, stage: CompiledStage, devices: np.ndarray) -> None:
        self._stage = stage
        self._devices = devices

    def compute_partials(self) -> pa.Table:
        """Return a row for each device, in the form that Spark sends."""
        rows = len(self._devices)
        columns = {
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
        return pa.table([columns.get(field.name, ones) for field in schema], schema=schema)

    def read_invalid_records(self) -> pa.Table:
        """Fail: every record is valid."""
        raise AssertionError

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Fail: no record is late."""
        raise AssertionError


class StateBench:
    """One stream over a folder."""

    def __init__(self, folder: Path, placement: Placement) -> None:
        self._folder = folder
        self._placement = placement
        self._stage = compile_stage(BENCH_STAGE, COLUMN_TYPES)
        self._read = 0
        self.engine = self.open_engine()

    def open_engine(self) -> BatchEngine:
        """Return an engine over the folder that has not resumed yet."""
        plan = Plan("bench", (BENCH_SOURCE,), (BENCH_STAGE,))
        graph = compile_graph(plan, {BENCH_STAGE.name: COLUMN_TYPES})
        tables = StreamTables(plan, graph, self._folder / "warehouse")
        fence = WriteFence("bench", 1, lambda: True)
        directory = self._folder / "stream"
        rules = collect_watermark_rules([BENCH_SOURCE])
        return BatchEngine(
            graph, rules, directory, tables, fence, lambda _: None, EngineOptions(placement=self._placement)
        )

    def batch(self, devices: np.ndarray) -> float:
        """Run a batch with a record of each device, and return its seconds."""
        span = OffsetRange("readings", 0, self._read, self._read + len(devices))
        self._read = span.end

        number = 0 if self.engine.last_outcome is None else self.engine.last_outcome.batch_id + 1
        started = time.perf_counter()
        intent = self.engine.start_data_batch(number, 1_000_000 + number, (span,))
        assert intent is not None
        self.engine.run_data_batch(intent, StubBatchInput(self._stage, devices))
        return time.perf_counter() - started

    def build(self, windows: int) -> None:
        """Open this many windows."""
        parts = np.array_split(np.arange(windows), BUILD_BATCHES)
        for part in track(parts, f"{windows:,} windows", console=Console(stderr=True), transient=True):
            self.batch(part)

    def restart(self) -> float:
        """Restart the engine, and return the seconds until the end of its first batch."""
        started = time.perf_counter()
        self.engine = self.open_engine()
        self.engine.resume()
        self.batch(np.arange(TOUCHED_WINDOWS))
        return time.perf_counter() - started


@contextlib.contextmanager
def choose_placement(*, executors: bool) -> Iterator[Placement]:
    """Yield the placement of batches: all on the driver, or all in the executors of a new session."""
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
        "batch of 10,000",
        "of the first size",
        "restart and first batch",
        "on disk",
        title=title,
    )
    first_median = 0.0
    random = np.random.default_rng(1)
    with choose_placement(executors=executors) as placement:
        for size in sizes:
            with tempfile.TemporaryDirectory() as scratch:
                bench = StateBench(Path(scratch), placement)
                bench.build(size)
                durations = [
                    bench.batch(random.choice(size, TOUCHED_WINDOWS, replace=False)) for _ in range(REPEATS)
                ]
                restart_s = bench.restart()
                state_bytes = sum(
                    path.stat().st_size for path in (Path(scratch) / "stream" / "state").rglob("run-*")
                )
            median = statistics.median(durations)
            first_median = first_median or median
            spread = f"{median * 1000:.0f} ms ({min(durations) * 1000:.0f} to {max(durations) * 1000:.0f})"
            on_disk = f"{state_bytes / 2**20:,.0f} MiB"
            table.add_row(f"{size:,}", spread, f"{median / first_median:.2f}", f"{restart_s:.2f} s", on_disk)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sizes", nargs="*", type=int, default=list(WINDOW_COUNTS), metavar="N", help="open windows"
    )
    parser.add_argument("--executors", action="store_true", help="process in executors of Spark")
    arguments = parser.parse_args()
    main(arguments.sizes, executors=arguments.executors)
