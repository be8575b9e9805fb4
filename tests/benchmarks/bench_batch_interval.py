"""Measures the batch interval: processor time of the host against latency.

A stack in a scratch folder runs with its feed of 50 records a second, once for each interval. Latency is the time
from a record's own timestamp in Kafka to the commit of its batch, for every record of the last seconds.
`python -m tests.benchmarks.bench_batch_interval [milliseconds …]`.
"""

import sys
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
    """The figures of one interval."""

    interval_ms: int
    core: float
    batches: int
    latencies: "np.ndarray[tuple[int], np.dtype[np.float64]]"


def read_batches_since(stack: ScratchStack, begun_ms: int) -> list[BatchRecord]:
    """Return the batches with records that started since a time."""
    store = open_control_store(stack.control_url)
    try:
        with store.engine.connect() as connection:
            query = select(batches).where(batches.c.clock_ms >= begun_ms, batches.c.kind == "data")
            return [from_batch_row(row) for row in connection.execute(query).mappings()]
    finally:
        store.close()


def read_record_timestamps(stack: ScratchStack) -> dict[tuple[int, int], int]:
    """Return the timestamp of each record, by partition and offset."""
    consumer = Consumer({**stack.client, "group.id": "bench", "enable.auto.commit": False})
    found: dict[tuple[int, int], int] = {}
    try:
        for partition in consumer.list_topics("sensors", timeout=10).topics["sensors"].partitions:
            end = consumer.get_watermark_offsets(TopicPartition("sensors", partition), timeout=10)[1]
            consumer.assign([TopicPartition("sensors", partition, 0)])
            for _ in range(end):
                message = consumer.poll(10)
                assert message is not None, "the topic cannot be read to its end"
                found[partition, message.offset()] = message.timestamp()[1]
    finally:
        consumer.close()
    return found


def compute_latencies(done: list[BatchRecord], made: dict[tuple[int, int], int]) -> Iterator[float]:
    """Return the time of each record until the commit of its batch."""
    for batch in done:
        committed = batch.clock_ms + sum(batch.durations_ms.values())
        for part in batch.accounts:
            for offset in range(part.start, part.end):
                yield committed - made[part.partition, offset]


def measure_interval(stack: ScratchStack, interval_ms: int) -> IntervalResult:
    """Run with this interval for a while."""
    stack.environment["PENSTOCK_HOST__BATCH_INTERVAL"] = f"{interval_ms}ms"
    stack.up()
    before = stack.batch()
    poll_until(lambda: stack.batch() > before + 5, 60, "batches")
    time.sleep(MEASURE_SECONDS)  # compilers and caches settle
    started_at, host = now_ms(), psutil.Process(stack.pids()["host"])
    hosts = [host, *host.children(recursive=True)]
    spent = cpu_seconds(hosts)
    time.sleep(MEASURE_SECONDS)
    core = (cpu_seconds(hosts) - spent) / MEASURE_SECONDS
    done = read_batches_since(stack, started_at)
    return IntervalResult(
        interval_ms, core, len(done), np.array(list(compute_latencies(done, read_record_timestamps(stack))))
    )


def main(intervals: list[int]) -> None:
    """Measure each interval, and print a table."""
    table = Table(
        "interval", "host's part of a core", "batches a second", "latency p50", "p99", title="50 records/s"
    )
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch) / "home", JAR_FOLDER)
        with stack.stopped_on_exit():
            for interval in intervals:
                found = measure_interval(stack, interval)
                p50, p99 = np.percentile(found.latencies, [50, 99])
                rate = f"{found.batches / MEASURE_SECONDS:.1f}"
                table.add_row(f"{interval} ms", f"{found.core:.1%}", rate, f"{p50:.0f} ms", f"{p99:.0f} ms")
    Console().print(table)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or list(INTERVALS_MS))
