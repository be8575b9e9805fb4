"""Measures the commit of 1,000 rows to Delta: the engine's commit and the append of delta-rs, in turns.

`python tests/benchmarks/bench_pipelines_commit.py [BATCHES]`.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table

from penstock.engine.tables.log_table import LogTable

ROWS_PER_BATCH = 1_000
BATCH_SCHEMA = pa.schema(
    [("device", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("value", pa.float64())]
)


def make_batch(number: int) -> pa.Table:
    """Return the rows of a batch."""
    return pa.table(
        [
            pa.array([f"device-{row}" for row in range(ROWS_PER_BATCH)]),
            pa.array([number * 1_000_000] * ROWS_PER_BATCH, BATCH_SCHEMA.field("at").type),
            pa.array([float(row) for row in range(ROWS_PER_BATCH)]),
        ],
        schema=BATCH_SCHEMA,
    )


def time_log_table(table: LogTable, number: int) -> float:
    """Return the milliseconds to write and commit a batch."""
    started = time.perf_counter()
    table.commit(number, table.write(make_batch(number), number, number), number)
    return (time.perf_counter() - started) * 1000


def time_delta_rs(path: Path, number: int) -> float:
    """Return the milliseconds to append the same rows with delta-rs."""
    started = time.perf_counter()
    write_deltalake(path, make_batch(number), mode="append")
    return (time.perf_counter() - started) * 1000


def main(batches: int) -> None:
    """Print the median and the 99th percentile of each fifth of the run."""
    figures = Table(
        "batches",
        "Penstock p50",
        "p99",
        "delta-rs p50",
        "p99",
        "ratio p50",
        title=f"{ROWS_PER_BATCH} rows per batch",
    )
    with tempfile.TemporaryDirectory() as scratch:
        table = LogTable(Path(scratch) / "penstock", BATCH_SCHEMA, "bench")
        durations_ms = [
            (time_log_table(table, n), time_delta_rs(Path(scratch) / "delta-rs", n)) for n in range(batches)
        ]
    part = batches // 5
    for start in range(0, part * 5, part):
        engine_ms, library_ms = (
            sorted(side) for side in zip(*durations_ms[start : start + part], strict=True)
        )
        medians = [statistics.median(engine_ms), statistics.median(library_ms)]
        p99 = [side[int(len(side) * 0.99)] for side in (engine_ms, library_ms)]
        cells = [f"{medians[0]:.1f} ms", f"{p99[0]:.1f} ms", f"{medians[1]:.1f} ms", f"{p99[1]:.1f} ms"]
        figures.add_row(f"{start}-{start + part}", *cells, f"{medians[1] / medians[0]:.1f}")
    Console().print(figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "batches", nargs="?", type=int, default=500, help="batches to commit (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.batches)
