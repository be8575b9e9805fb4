"""Measures memory over a simulated hour at constant load: an hour of event time, batch by batch, without pauses.

Windows of ten seconds accept late records for a minute, so the state changes all the time. The table shows the
memory of the Python process and of Spark's JVM in each twelfth of the hour. After each twelfth, another process
merges small files as maintenance does, because the writer of a table keeps the list of its files in memory.
`python -m tests.benchmarks.bench_pipelines_memory [RECORDS_PER_SECOND] [SECONDS_PER_BATCH]`.
"""

import argparse
import json
import multiprocessing
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
from confluent_kafka import Producer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests.benchmarks.rivals import (
    KEY_COUNT,
    EngineRival,
    now_ms,
    open_scene,
    plan_mean_by_device,
    wait_until_read,
)

from penstock.engine.storage.file_access import is_delta_table
from penstock.engine.tables.file_maintenance import merge_small_files
from penstock.engine.tables.table_paths import list_owned_paths
from penstock.engine.windows.fixed import Fixed
from penstock.stream import after_watermark, every

HOUR_SECONDS = 3_600
SLICE_COUNT = 12
HOUR_TOPIC = "hour"
START_MS = 1_700_000_000_000


def read_command_line(child: psutil.Process) -> str:
    """Return the command line of a process; empty if it has just ended."""
    try:
        return " ".join(child.cmdline())
    except psutil.Error:
        return ""


def measure_memory_mb() -> tuple[float, float]:
    """Return the megabytes of this process and of Spark's JVM."""
    process = psutil.Process(os.getpid())
    jvms = [child for child in process.children(recursive=True) if "SparkSubmit" in read_command_line(child)]
    return process.memory_info().rss / 2**20, sum(jvm.memory_info().rss for jvm in jvms) / 2**20


def merge_tables(warehouse: Path, tables: Sequence[str], stream: str) -> int:
    """Merge the small files of append-only tables, and return the number of merged files."""
    existing = [warehouse / table for table in tables if is_delta_table(warehouse / table)]
    return sum(merge_small_files(table, stream, now_ms()).merged_files for table in existing)


def send_records(producer: Producer, records: int, rate: int, start_ms: int) -> None:
    """Write records with event times from `start_ms` on, and wait until the broker has acknowledged them."""
    for number in range(records):
        at = start_ms + number * 1_000 // rate
        record = {"device": f"d{number % KEY_COUNT}", "at": at, "temperature": number % 800 / 10}
        producer.produce(HOUR_TOPIC, json.dumps(record).encode(), partition=number % 2)
        producer.poll(0)
    producer.flush()


def main(rate: int, seconds: int) -> None:
    """For each interval of a simulated hour, write records, wait for the commit, and measure memory."""
    plan = plan_mean_by_device(
        HOUR_TOPIC,
        Fixed(10_000),
        "retracting",
        after_watermark(early=every("10 seconds")),
        max_out_of_orderness=1_000,
    )
    plan = replace(plan, stages=(replace(plan.only_stage, lateness=60_000),))
    interval_count, records = HOUR_SECONDS // seconds, rate * seconds
    slice_size = interval_count // SLICE_COUNT
    samples: list[tuple[float, float]] = []
    files: list[int] = []
    # A spawned process, so that the memory of merging does not count as the stream's.
    merger = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    with open_scene() as scene, merger:
        scene.broker.create_topic(HOUR_TOPIC, 2)
        producer = Producer({"bootstrap.servers": scene.broker.bootstrap, "linger.ms": 2, "log_level": 0})
        rival = EngineRival(scene, plan)
        rival.start()
        for number in track(
            range(interval_count), "simulated hour", console=Console(stderr=True), transient=True
        ):
            send_records(producer, records, rate, START_MS + number * seconds * 1_000)
            wait_until_read(rival, records * (number + 1))
            samples.append(measure_memory_mb())
            if (number + 1) % slice_size == 0:
                files.append(
                    merger.submit(merge_tables, rival.warehouse, list_owned_paths(plan), plan.name).result()
                )
        rival.stop()
    title = f"{rate} records per second, {records * interval_count:,} in total"
    table = Table("simulated time", "Python, MB", "JVM, MB", "merged files", title=title)
    for part in range(SLICE_COUNT):
        part_samples = samples[part * slice_size : (part + 1) * slice_size]
        columns = [
            f"{statistics.median(sample[column] for sample in part_samples):,.0f}" for column in (0, 1)
        ]
        table.add_row(f"{part * 5} to {part * 5 + 5} min", *columns, str(files[part]))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rate", nargs="?", type=int, default=300, metavar="RECORDS_PER_SECOND", help="default: %(default)s"
    )
    parser.add_argument(
        "seconds", nargs="?", type=int, default=5, metavar="SECONDS_PER_BATCH", help="default: %(default)s"
    )
    arguments = parser.parse_args()
    main(arguments.rate, arguments.seconds)
