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
from tests.benchmarks.rivals import KEYS, Ours, now_ms, plan_over, scene, until_read

from penstock.pipelines.model import after_watermark, every
from penstock.pipelines.plan.windows import Fixed
from penstock.pipelines.store.files import is_table
from penstock.pipelines.tables.places import own_tables
from penstock.pipelines.tables.upkeep import merge_small_files

HOUR = 3_600
SLICES = 12
TOPIC = "hour"
BEGAN = 1_700_000_000_000


def told(child: psutil.Process) -> str:
    """How a process was begun; nothing of one that has just ended."""
    try:
        return " ".join(child.cmdline())
    except psutil.Error:
        return ""


def held() -> tuple[float, float]:
    """Megabytes of this process, and of the Java machine of Spark."""
    me = psutil.Process(os.getpid())
    java = [child for child in me.children(recursive=True) if "SparkSubmit" in told(child)]
    return me.memory_info().rss / 2**20, sum(child.memory_info().rss for child in java) / 2**20


def merged(warehouse: Path, tables: Sequence[str], whose: str) -> int:
    """Merge the small files of tables that only grow; returns how many there were."""
    there = [warehouse / table for table in tables if is_table(warehouse / table)]
    return sum(merge_small_files(table, whose, now_ms()).files for table in there)


def send(producer: Producer, records: int, rate: int, begin: int) -> None:
    """Write records whose event times go on from a moment, and wait until the broker has them."""
    for number in range(records):
        at = begin + number * 1_000 // rate
        record = {"device": f"d{number % KEYS}", "at": at, "temperature": number % 800 / 10}
        producer.produce(TOPIC, json.dumps(record).encode(), partition=number % 2)
        producer.poll(0)
    producer.flush()


def main(rate: int = 300, seconds: int = 5) -> None:
    """Write a stretch, wait until it is in the table, look, and so on for an hour."""
    plan = plan_over(
        TOPIC, Fixed(10_000), "retracting", after_watermark(early=every("10 seconds")), bound=1_000
    )
    plan = replace(plan, stages=(replace(plan.stage, lateness=60_000),))
    stretches, records = HOUR // seconds, rate * seconds
    size = stretches // SLICES
    seen: list[tuple[float, float]] = []
    files: list[int] = []
    # A process of its own, begun afresh: what it takes to merge is none of the stream's memory.
    beside = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    with scene() as one, beside:
        one.broker.create_topic(TOPIC, 2)
        producer = Producer({"bootstrap.servers": one.broker.bootstrap, "linger.ms": 2, "log_level": 0})
        rival = Ours(one, plan)
        rival.start()
        for stretch in track(range(stretches), "an hour", console=Console(stderr=True), transient=True):
            send(producer, records, rate, BEGAN + stretch * seconds * 1_000)
            until_read(rival, records * (stretch + 1))
            seen.append(held())
            if (stretch + 1) % size == 0:
                files.append(beside.submit(merged, rival.warehouse, own_tables(plan), plan.name).result())
        rival.stop()
    title = f"{rate} records a second, {records * stretches:,} in all"
    table = Table("of the hour", "Python, MB", "Java, MB", "files merged", title=title)
    for part in range(SLICES):
        some = seen[part * size : (part + 1) * size]
        columns = [f"{statistics.median(one[which] for one in some):,.0f}" for which in (0, 1)]
        table.add_row(f"{part * 5} to {part * 5 + 5} min", *columns, str(files[part]))
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
