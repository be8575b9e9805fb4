"""What the syncs of a batch cost: `python -m tests.benchmarks.bench_pipelines_sync --batches 200`.

Two streams run the same batches in turn, one with `host.sync_writes` and one without, on the disk of `--folder`.
The records are in memory, so that a batch is the engine's own work: state, journal and tables, without Spark.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.batch.batch_engine import BatchEngine

KEYS = 50
WARM_UP_BATCHES = 5


def main() -> None:
    """Run and print both, with their spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=None, help="a folder on the disk to measure")
    parser.add_argument("--live-p50-ms", type=float, default=150.0, help="p50 of a live batch, for the share")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        benches = {
            syncs: Bench(PLANS["fixed"], Path(scratch) / str(syncs), syncs=syncs) for syncs in (True, False)
        }
        engines = {syncs: bench.open() for syncs, bench in benches.items()}
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(arguments.batches + WARM_UP_BATCHES):
            for syncs in (True, False) if number % 2 else (False, True):
                duration_ms = time_batch(benches[syncs], engines[syncs], number)
                if number >= WARM_UP_BATCHES:
                    times[syncs].append(duration_ms)
        syncs_ms = [outcome.durations_ms["sync"] for outcome in benches[True].outcomes[WARM_UP_BATCHES:]]
    differences = np.array(times[True]) - np.array(times[False])
    print(f"batch with syncs:    {format_spread(times[True])}")
    print(f"batch without syncs: {format_spread(times[False])}")
    print(f"group of syncs:      {format_spread(syncs_ms)}")
    print(f"difference of pairs: {format_spread(differences.tolist())}")
    share = 100 * float(np.median(differences)) / arguments.live_p50_ms
    print(f"share of a live batch of {arguments.live_p50_ms:g} ms: {share:.1f} %")


def time_batch(bench: Bench, engine: BatchEngine, number: int) -> float:
    """Run a batch of records, and return its duration in milliseconds."""
    records = tuple(
        InputRecord(
            "records",
            0,
            number * KEYS + key,
            {"key": f"k{key}", "at": number * 5, "value": key, "word": None},
        )
        for key in range(KEYS)
    )
    start = time.perf_counter()
    bench.feed(engine, InputBatch(number, 100 + number * 5, records))
    return (time.perf_counter() - start) * 1000


def format_spread(times_ms: Sequence[float]) -> str:
    """Return the tenth percentile, which other programs disturb least, the quartiles and the 99th percentile."""
    least, low, middle, high, highest = np.percentile(times_ms, [10, 25, 50, 75, 99])
    return f"p50 {middle:6.2f} ms (p10 {least:.2f}, p25 {low:.2f}, p75 {high:.2f}, p99 {highest:.2f})"


if __name__ == "__main__":
    main()
