"""Measures the write and commit of 1,000 rows to a latest table with N rows.

The cost depends on the windows that a batch touches. `one window`: N keys in one window, of which the touched ones
are spread evenly. `newest of many`: an hour of one-minute windows, of which the newest is touched. `newest
sessions`: N sessions that start within an hour, of which the newest are touched. It does not start Spark.
`python -m tests.benchmarks.bench_pipelines_latest [N …]`.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from penstock.engine.tables.latest_table import LatestTable, to_latest_schema
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE

TABLE_SIZES = (100_000, 1_000_000, 5_000_000)
TOUCHED_ROWS = 1_000
REPEATS = 7
MINUTE_US, HOUR_US = 60_000_000, 3_600_000_000
PANE_SCHEMA = pa.schema(
    [
        ("device", pa.string()),
        ("window_start", TIMESTAMP_TYPE),
        ("window_end", TIMESTAMP_TYPE),
        ("readings", pa.int64()),
        ("temperature", pa.float64()),
        ("pane", pa.int64()),
        ("timing", pa.string()),
        ("on_time_index", pa.int64()),
        ("final", pa.bool_()),
        ("kind", pa.string()),
        ("records", pa.int64()),
        ("batch_id", pa.int64()),
        ("batch_clock", TIMESTAMP_TYPE),
        ("watermark", TIMESTAMP_TYPE),
    ]
)
IntegerArray = np.ndarray


def make_panes(device: IntegerArray, window_start: IntegerArray, size: int, batch: int) -> pa.Table:
    """Return a pane of each of these windows."""
    rows, random = len(device), np.random.default_rng(batch)
    start = pa.array(window_start).cast(TIMESTAMP_TYPE)
    end = pa.array(window_start + size).cast(TIMESTAMP_TYPE)
    now = pa.array(np.full(rows, batch * 1_000_000)).cast(TIMESTAMP_TYPE)
    ones, number = pa.array(np.ones(rows, np.int64)), pa.array(np.full(rows, batch))
    names = pa.array(np.char.add("device-", device.astype("U8")))
    columns = [names, start, end, pa.array(random.integers(0, 99, rows)), pa.array(random.random(rows))]
    columns += [ones, pa.array(["early"] * rows), ones, pa.array(np.zeros(rows, bool))]
    columns += [pa.array(["insert"] * rows), ones, number, now, now]
    return pa.table(columns, schema=PANE_SCHEMA)


def make_one_window(total: int, batch: int | None) -> pa.Table:
    """Return keys in one window: all of them, or those that a batch touches."""
    every = np.arange(total)
    device = every if batch is None else every[batch :: total // TOUCHED_ROWS][:TOUCHED_ROWS]
    return make_panes(device, np.zeros(len(device), np.int64), HOUR_US, batch or 0)


def make_newest_windows(total: int, batch: int | None) -> pa.Table:
    """Return an hour of one-minute windows."""
    device = np.arange(total) if batch is None else total - 1 - np.arange(TOUCHED_ROWS) * 60
    return make_panes(device // 60, device % 60 * MINUTE_US, MINUTE_US, batch or 0)


def make_newest_sessions(total: int, batch: int | None) -> pa.Table:
    """Return sessions that start one after the other."""
    device = np.arange(total) if batch is None else total - 1 - np.arange(TOUCHED_ROWS)
    return make_panes(device, device * (HOUR_US // total), MINUTE_US, batch or 0)


TABLE_SHAPES: dict[str, tuple[Callable[[int, int | None], pa.Table], int]] = {
    "one window": (make_one_window, HOUR_US),
    "newest of many": (make_newest_windows, MINUTE_US),
    "newest sessions": (make_newest_sessions, HOUR_US),
}


def measure_shape(shape: str, total: int, folder: Path) -> tuple[list[float], int]:
    """Return the median, fastest and slowest batch and the median CPU time in milliseconds, and the file count."""
    make_rows, window_size_us = TABLE_SHAPES[shape]
    table = LatestTable(
        folder / shape / str(total), to_latest_schema(PANE_SCHEMA), "bench", ["device"], window_size_us
    )
    table.commit(0, table.write(make_rows(total, None), 0, 0), 0)
    wall_ms, cpu_ms = [], []
    for batch in range(1, REPEATS + 2):
        rows = make_rows(total, batch)
        started, cpu_started = time.perf_counter(), time.process_time()
        table.commit(batch, table.write(rows, batch, batch), batch)
        wall_ms.append((time.perf_counter() - started) * 1000)
        cpu_ms.append((time.process_time() - cpu_started) * 1000)
    wall_ms = wall_ms[1:]
    figures = [statistics.median(wall_ms), min(wall_ms), max(wall_ms), statistics.median(cpu_ms[1:])]
    return figures, len(list(table.path.glob("*.parquet")))


def main(sizes: tuple[int, ...]) -> None:
    """Measure every shape with every size."""
    columns = ("windows", "rows", "p50", "min", "max", "CPU p50", "files")
    figures = Table(*columns, title=f"{TOUCHED_ROWS:,} touched")
    with tempfile.TemporaryDirectory() as scratch:
        for shape in TABLE_SHAPES:
            for total in sizes:
                milliseconds, files = measure_shape(shape, total, Path(scratch))
                times = [f"{value:.0f} ms" for value in milliseconds]
                figures.add_row(shape, f"{total:,}", *times, str(files))
    Console().print(figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sizes", nargs="*", type=int, default=TABLE_SIZES, metavar="N", help="rows of the table"
    )
    arguments = parser.parse_args()
    main(tuple(arguments.sizes))
