"""Memory over an hour at constant load, by a fast clock: an hour of event time, batch by batch, as fast as it goes.

Windows of ten seconds with corrections for a minute, so that state comes and goes all the time. Printed is what the
Python process and Spark's Java machine hold, in each twelfth of the hour. At the end of each another process merges
small files, as maintenance does beside a stream: who writes a table keeps a list of its files, and what each holds.
`python -m tests.benchmarks.bench_pipelines_memory [RECORDS_PER_SECOND] [SECONDS_PER_BATCH]`.
"""

import json
import multiprocessing
import os
import statistics
import sys
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

from penstock.engine.plan.windows import Fixed
from penstock.engine.storage.file_access import is_delta_table
from penstock.engine.tables.file_maintenance import merge_small_files
from penstock.engine.tables.table_paths import list_owned_paths
from penstock.stream import after_watermark, every

HOUR_SECONDS = 3_600
SLICE_COUNT = 12
HOUR_TOPIC = "hour"
START_MS = 1_700_000_000_000


def read_command_line(child: psutil.Process) -> str:
    """How a process was begun; nothing of one that has just ended."""
    try:
        return " ".join(child.cmdline())
    except psutil.Error:
        return ""


def measure_memory_mb() -> tuple[float, float]:
    """Megabytes of this process, and of the Java machine of Spark."""
    me = psutil.Process(os.getpid())
    java = [child for child in me.children(recursive=True) if "SparkSubmit" in read_command_line(child)]
    return me.memory_info().rss / 2**20, sum(child.memory_info().rss for child in java) / 2**20


def merge_tables(warehouse: Path, tables: Sequence[str], whose: str) -> int:
    """Merge the small files of tables that only grow; returns how many there were."""
    there = [warehouse / table for table in tables if is_delta_table(warehouse / table)]
    return sum(merge_small_files(table, whose, now_ms()).merged_files for table in there)


def send_records(producer: Producer, records: int, rate: int, begin: int) -> None:
    """Write records whose event times go on from a moment, and wait until the broker has them."""
    for number in range(records):
        at = begin + number * 1_000 // rate
        record = {"device": f"d{number % KEY_COUNT}", "at": at, "temperature": number % 800 / 10}
        producer.produce(HOUR_TOPIC, json.dumps(record).encode(), partition=number % 2)
        producer.poll(0)
    producer.flush()


def main(rate: int = 300, seconds: int = 5) -> None:
    """Write a stretch, wait until it is in the table, look, and so on for an hour."""
    plan = plan_mean_by_device(
        HOUR_TOPIC,
        Fixed(10_000),
        "retracting",
        after_watermark(early=every("10 seconds")),
        max_out_of_orderness=1_000,
    )
    plan = replace(plan, stages=(replace(plan.only_stage, lateness=60_000),))
    stretches, records = HOUR_SECONDS // seconds, rate * seconds
    size = stretches // SLICE_COUNT
    seen: list[tuple[float, float]] = []
    files: list[int] = []
    # A process of its own, begun afresh: what it takes to merge is none of the stream's memory.
    beside = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    with open_scene() as one, beside:
        one.broker.create_topic(HOUR_TOPIC, 2)
        producer = Producer({"bootstrap.servers": one.broker.bootstrap, "linger.ms": 2, "log_level": 0})
        rival = EngineRival(one, plan)
        rival.start()
        for stretch in track(range(stretches), "an hour", console=Console(stderr=True), transient=True):
            send_records(producer, records, rate, START_MS + stretch * seconds * 1_000)
            wait_until_read(rival, records * (stretch + 1))
            seen.append(measure_memory_mb())
            if (stretch + 1) % size == 0:
                files.append(
                    beside.submit(merge_tables, rival.warehouse, list_owned_paths(plan), plan.name).result()
                )
        rival.stop()
    title = f"{rate} records a second, {records * stretches:,} in all"
    table = Table("of the hour", "Python, MB", "Java, MB", "files merged", title=title)
    for part in range(SLICE_COUNT):
        some = seen[part * size : (part + 1) * size]
        columns = [f"{statistics.median(one[which] for one in some):,.0f}" for which in (0, 1)]
        table.add_row(f"{part * 5} to {part * 5 + 5} min", *columns, str(files[part]))
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
