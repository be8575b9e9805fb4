"""Measures the processing of stateful functions without Spark: key by key, and vectorized over all keys.

Each batch holds records of random keys, and the state holds all keys. Every record returns a row, as in
`bench_pipelines_python`. `python -m tests.benchmarks.bench_pipelines_keyed [--records N] [--repeats N] [KEYS …]`.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import format_spread
from tests.benchmarks.bench_pipelines_python import plan_stateful

from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS

COLUMN_TYPES = {"device": pa.string(), "at": pa.int64(), "temperature": pa.float64()}


def make_records(records: int, keys: int, seed: int) -> pa.Table:
    """Return records of random keys in two partitions, in the form that Spark sends."""
    random = np.random.default_rng(seed)
    numbers = np.arange(records)
    return pa.table(
        {
            "_topic": pa.array(["readings"] * records),
            "_partition": pa.array((numbers % 2).astype(np.int32)),
            "_offset": numbers // 2,
            "_time": numbers,
            "at": numbers,
            "device": [f"device-{key:07d}" for key in random.integers(0, keys, records)],
            "temperature": random.random(records),
        }
    )


def measure_rates(records: int, keys: int, repeats: int, *, vectorized: bool) -> list[float]:
    """Return the records per second of each batch after the first."""
    stage = compile_stage(plan_stateful(vectorized=vectorized).only_stage, COLUMN_TYPES)
    rates: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        tree = trees.create_empty_tree(stage.state_schema)
        for batch in range(repeats + 1):
            batch_records = make_records(records, keys, batch)
            batch_time = BatchTime(
                batch, batch - 1 if batch else MIN_TIMESTAMP_MS, batch, MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
            )
            started = time.perf_counter()
            outcome = process_batch(stage, tree, batch_records, batch_time)
            rates.append(records / (time.perf_counter() - started))
            tree = tree.with_run(outcome.changed_state, Path(folder) / f"run-{batch}.arrow")
    return rates[1:]


def main(records: int, repeats: int, sizes: list[int]) -> None:
    """Print records per second for each number of keys."""
    title = f"batches of {records:,} records, {repeats} repeats: median (min to max), records/s"
    table = Table("keys", "key by key", "vectorized", "speedup", title=title)
    for keys in sizes:
        by_key, vectorized = (
            measure_rates(records, keys, repeats, vectorized=is_vectorized) for is_vectorized in (False, True)
        )
        speedups = [fast / slow for fast, slow in zip(vectorized, by_key, strict=True)]
        table.add_row(
            f"{keys:,}",
            format_spread(by_key, ",.0f"),
            format_spread(vectorized, ",.0f"),
            format_spread(speedups, ".1f"),
        )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, metavar="KEYS", help="numbers of keys")
    parser.add_argument("--records", type=int, default=200_000, help="records per batch")
    parser.add_argument("--repeats", type=int, default=7, help="measured batches")
    arguments = parser.parse_args()
    main(arguments.records, arguments.repeats, arguments.sizes or [1_000, 100_000])
