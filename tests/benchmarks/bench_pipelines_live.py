"""Measures the latency from a record to its row in Delta: the engine and native Spark windows, one after the other.

The latency of a record is the time from its timestamp to the commit of its batch. Each repeat is an interval of a
stream that has warmed up. The engine and the rival read separate topics.
`python -m tests.benchmarks.bench_pipelines_live [RECORDS_PER_SECOND …]`.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np
from confluent_kafka import Consumer, TopicPartition
from rich.console import Console
from rich.table import Table
from tests.benchmarks.rivals import (
    BenchScene,
    EngineRival,
    NativeRival,
    open_scene,
    plan_mean_by_device,
    start_load,
    wait_until_read,
)

from penstock.engine.windows.fixed import Fixed

RATES_PER_SECOND = (5_000, 50_000)
REPEATS = 5
WARM_UP_SECONDS = 12
INTERVAL_SECONDS = 6
LatencyArray = np.ndarray[tuple[int], np.dtype[np.float64]]


def read_record_timestamps(scene: BenchScene, topic: str, partition: int, records: int) -> LatencyArray:
    """Return the timestamps of all records of a partition, in milliseconds."""
    consumer = Consumer(
        {"bootstrap.servers": scene.broker.bootstrap, "group.id": "bench", "fetch.min.bytes": 65536}
    )
    timestamps = np.empty(records)
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        count = 0
        while count < records:
            for message in consumer.consume(10_000, timeout=5):
                timestamps[count] = message.timestamp()[1]
                count += 1
    finally:
        consumer.close()
    return timestamps


def compute_latencies(scene: BenchScene, topic: str, rival: EngineRival | NativeRival) -> list[LatencyArray]:
    """Return the latencies of each interval, in milliseconds."""
    batches_by_partition: dict[int, list[tuple[int, int, float]]] = {}
    for committed_at, spans in rival.committed:
        for partition, start, end in spans:
            batches_by_partition.setdefault(partition, []).append((start, end, committed_at * 1000))
    intervals: list[list[LatencyArray]] = [[] for _ in range(REPEATS)]
    for partition, batches in batches_by_partition.items():
        written_at = read_record_timestamps(scene, topic, partition, batches[-1][1])
        visible_at = np.concatenate([np.full(end - start, at) for start, end, at in batches])
        interval_numbers = ((written_at - written_at[0]) / 1000 - WARM_UP_SECONDS) // INTERVAL_SECONDS
        for number in range(REPEATS):
            intervals[number].append((visible_at - written_at)[interval_numbers == number])
    return [np.concatenate(parts) for parts in intervals]


def measure_stream(scene: BenchScene, rate: int, kind: str) -> list[LatencyArray]:
    """Run a stream while records are written, and return the latencies of each interval."""
    topic = f"live-{kind}-{rate}"
    scene.broker.create_topic(topic, 2)
    rival: EngineRival | NativeRival = (
        EngineRival(scene, plan_mean_by_device(topic, Fixed(10_000)))
        if kind == "penstock"
        else NativeRival(scene, topic)
    )
    rival.start()
    records = rate * (WARM_UP_SECONDS + INTERVAL_SECONDS * REPEATS)
    source = start_load(scene.broker.bootstrap, topic, rate, records)
    time.sleep(WARM_UP_SECONDS)
    wait_until_read(rival, records)
    rival.stop()
    source.wait()
    return compute_latencies(scene, topic, rival)


def format_latency_spread(values: Sequence[float], unit: str = " ms") -> str:
    """Return the median with the minimum and the maximum."""
    form = ".2f" if unit == "" else ".0f"
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}}){unit}"


def main(rates: Sequence[int]) -> None:
    """Measure both at each rate, and print a table."""
    table = Table(
        "records/s", "", "Penstock", "native Spark", "ratio", title="latency: record to row visible in Delta"
    )
    with open_scene() as scene:
        for rate in rates:
            latencies = {kind: measure_stream(scene, rate, kind) for kind in ("penstock", "native")}
            for quantile in (50, 99):
                engine_ms, native_ms = (
                    [float(np.percentile(interval, quantile)) for interval in latencies[kind]]
                    for kind in ("penstock", "native")
                )
                ratios = [engine / native for engine, native in zip(engine_ms, native_ms, strict=True)]
                table.add_row(
                    f"{rate:,}",
                    f"p{quantile}",
                    format_latency_spread(engine_ms),
                    format_latency_spread(native_ms),
                    format_latency_spread(ratios, ""),
                )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rates",
        nargs="*",
        type=int,
        default=RATES_PER_SECOND,
        metavar="RECORDS_PER_SECOND",
        help="rates to measure",
    )
    arguments = parser.parse_args()
    main(arguments.rates)
