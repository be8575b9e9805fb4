"""Measures the commit of a batch of 1,000 rows to Delta: the engine's commit and the library's append, in turns.

`python tests/benchmarks/bench_pipelines_commit.py [batches]`; it needs no running service.
"""

import statistics
import sys
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


def time_delta_library(path: Path, number: int) -> float:
    """Return the milliseconds for the same rows, appended by the library."""
    started = time.perf_counter()
    write_deltalake(path, make_batch(number), mode="append")
    return (time.perf_counter() - started) * 1000


def main(batches: int = 500) -> None:
    """Print the median and the 99th percentile of each fifth of the run."""
    figures = Table(
        "batches",
        "ours p50",
        "p99",
        "library p50",
        "p99",
        "ratio p50",
        title=f"{ROWS_PER_BATCH} rows a batch",
    )
    with tempfile.TemporaryDirectory() as scratch:
        table = LogTable(Path(scratch) / "ours", BATCH_SCHEMA, "bench")
        taken = [
            (time_log_table(table, n), time_delta_library(Path(scratch) / "library", n))
            for n in range(batches)
        ]
    part = batches // 5
    for begin in range(0, part * 5, part):
        mine, theirs = (sorted(side) for side in zip(*taken[begin : begin + part], strict=True))
        middle = [statistics.median(mine), statistics.median(theirs)]
        slow = [side[int(len(side) * 0.99)] for side in (mine, theirs)]
        cells = [f"{middle[0]:.1f} ms", f"{slow[0]:.1f} ms", f"{middle[1]:.1f} ms", f"{slow[1]:.1f} ms"]
        figures.add_row(f"{begin}-{begin + part}", *cells, f"{middle[1] / middle[0]:.1f}")
    Console().print(figures)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
