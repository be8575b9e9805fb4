"""The fold of functions with a memory alone, without Spark: key by key, and vectorized over all keys.

Each batch brings records of random keys to a state that knows all of them; every record gives a row, as in
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
from tests.benchmarks.bench_pipelines_catchup import format_rate_spread
from tests.benchmarks.bench_pipelines_python import plan_stateful

from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.compiled_stage import compile_stage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS

COLUMN_TYPES = {"device": pa.string(), "at": pa.int64(), "temperature": pa.float64()}


def make_records(records: int, keys: int, seed: int) -> pa.Table:
    """Records as Spark sends them, of random keys, in two partitions."""
    chance = np.random.default_rng(seed)
    numbers = np.arange(records)
    return pa.table(
        {
            "_topic": pa.array(["readings"] * records),
            "_partition": pa.array((numbers % 2).astype(np.int32)),
            "_offset": numbers // 2,
            "_time": numbers,
            "at": numbers,
            "device": [f"device-{key:07d}" for key in chance.integers(0, keys, records)],
            "temperature": chance.random(records),
        }
    )


def measure_rates(records: int, keys: int, repeats: int, *, vectorized: bool) -> list[float]:
    """Records a second of each batch, after one that is not counted."""
    stage = compile_stage(plan_stateful(vectorized=vectorized).only_stage, COLUMN_TYPES)
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        tree = trees.create_empty_tree(stage.state_schema)
        for batch in range(repeats + 1):
            came = make_records(records, keys, batch)
            moment = BatchTime(
                batch, batch - 1 if batch else MIN_TIMESTAMP_MS, batch, MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS
            )
            began = time.perf_counter()
            outcome = process_batch(stage, tree, came, moment)
            found.append(records / (time.perf_counter() - began))
            tree = tree.with_run(outcome.changed_state, Path(folder) / f"run-{batch}.arrow")
    return found[1:]


def main(records: int, repeats: int, sizes: list[int]) -> None:
    """Print records a second, for each number of keys."""
    title = f"batches of {records:,} records, {repeats} repeats: median (least to greatest), records/s"
    table = Table("keys", "key by key", "vectorized", "times", title=title)
    for keys in sizes:
        plain, at_once = (measure_rates(records, keys, repeats, vectorized=each) for each in (False, True))
        times = [fast / slow for fast, slow in zip(at_once, plain, strict=True)]
        table.add_row(
            f"{keys:,}",
            format_rate_spread(plain, ",.0f"),
            format_rate_spread(at_once, ",.0f"),
            format_rate_spread(times, ".1f"),
        )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, metavar="KEYS", help="how many keys there are")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args()
    main(chosen.records, chosen.repeats, chosen.sizes or [1_000, 100_000])
