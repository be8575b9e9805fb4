"""Measures the CPU time of the stream host and the latency of records for several batch intervals.

A stack in a scratch folder runs once for each interval, with a feed of 50 records per second. The latency of a
record is the time from its Kafka timestamp to the commit of its batch. Only records of the last seconds count.
`python -m tests.benchmarks.bench_batch_interval [MILLISECONDS …]`.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from confluent_kafka import Consumer, TopicPartition
from rich.console import Console
from rich.table import Table
from sqlalchemy import select
from tests.benchmarks.bench_ground import cpu_seconds
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

from penstock.core.clock import now_ms
from penstock.engine.host.control import BatchRecord
from penstock.platform.control import open_control_store
from penstock.platform.control.row_mapping import from_batch_row
from penstock.platform.control.tables import batches

JAR_FOLDER = Path(__file__).resolve().parents[2] / ".penstock" / "jars"
INTERVALS_MS = (0, 100, 200, 500, 1000)
MEASURE_SECONDS = 20.0


@dataclass(frozen=True)
class IntervalResult:
    """The measurements of one interval."""

    interval_ms: int
    core_share: float
    batch_count: int
    latencies: "np.ndarray[tuple[int], np.dtype[np.float64]]"


def read_batches_since(stack: ScratchStack, started_ms: int) -> list[BatchRecord]:
    """Return the data batches that started at or after a time."""
    store = open_control_store(stack.control_url)
    try:
        with store.engine.connect() as connection:
            query = select(batches).where(batches.c.clock_ms >= started_ms, batches.c.kind == "data")
            return [from_batch_row(row) for row in connection.execute(query).mappings()]
    finally:
        store.close()


def read_record_timestamps(stack: ScratchStack) -> dict[tuple[int, int], int]:
    """Return the timestamp of each record, by partition and offset."""
    consumer = Consumer({**stack.client, "group.id": "bench", "enable.auto.commit": False})
    timestamps: dict[tuple[int, int], int] = {}
    try:
        for partition in consumer.list_topics("sensors", timeout=10).topics["sensors"].partitions:
            end = consumer.get_watermark_offsets(TopicPartition("sensors", partition), timeout=10)[1]
            consumer.assign([TopicPartition("sensors", partition, 0)])
            for _ in range(end):
                message = consumer.poll(10)
                assert message is not None, (
                    f"no record of sensors-{partition} within 10 s before offset {end}"
                )
                timestamps[partition, message.offset()] = message.timestamp()[1]
    finally:
        consumer.close()
    return timestamps


def compute_latencies(
    committed: list[BatchRecord], timestamps: dict[tuple[int, int], int]
) -> Iterator[float]:
    """Yield the milliseconds from the timestamp of each record to the commit of its batch."""
    for batch in committed:
        committed_ms = batch.clock_ms + sum(batch.durations_ms.values())
        for part in batch.accounts:
            for offset in range(part.start, part.end):
                yield committed_ms - timestamps[part.partition, offset]


def measure_interval(stack: ScratchStack, interval_ms: int) -> IntervalResult:
    """Run the stack with a batch interval, and return its measurements."""
    stack.environment["PENSTOCK_HOST__BATCH_INTERVAL"] = f"{interval_ms}ms"
    stack.up()
    first_batch = stack.batch()
    poll_until(lambda: stack.batch() > first_batch + 5, 60, "batches")
    time.sleep(MEASURE_SECONDS)  # the JIT compiler and the caches warm up
    started_ms, host = now_ms(), psutil.Process(stack.pids()["host"])
    processes = [host, *host.children(recursive=True)]
    cpu_before_s = cpu_seconds(processes)
    time.sleep(MEASURE_SECONDS)
    core_share = (cpu_seconds(processes) - cpu_before_s) / MEASURE_SECONDS
    committed = read_batches_since(stack, started_ms)
    return IntervalResult(
        interval_ms,
        core_share,
        len(committed),
        np.array(list(compute_latencies(committed, read_record_timestamps(stack)))),
    )


def main(intervals: list[int]) -> None:
    """Measure each interval, and print a table."""
    table = Table(
        "interval", "host CPU, share of a core", "batches/s", "latency p50", "p99", title="50 records/s"
    )
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", JAR_FOLDER)
        with stack.stopped_on_exit():
            for interval in intervals:
                result = measure_interval(stack, interval)
                p50, p99 = np.percentile(result.latencies, [50, 99])
                rate = f"{result.batch_count / MEASURE_SECONDS:.1f}"
                table.add_row(
                    f"{interval} ms", f"{result.core_share:.1%}", rate, f"{p50:.0f} ms", f"{p99:.0f} ms"
                )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "intervals_ms",
        nargs="*",
        type=int,
        default=list(INTERVALS_MS),
        metavar="MILLISECONDS",
        help="batch intervals",
    )
    arguments = parser.parse_args()
    main(arguments.intervals_ms)
