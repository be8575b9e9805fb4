"""Memory over an hour at constant load, by a fast clock: an hour of event time, batch by batch, as fast as it goes.

Windows of ten seconds with corrections for a minute, so that state comes and goes all the time. Printed is what the
Python process and Spark's Java machine hold, in each twelfth of the hour.
`python -m tests.benchmarks.bench_pipelines_memory [RECORDS_PER_SECOND] [SECONDS_PER_BATCH]`.
"""

import json
import os
import statistics
import sys
from dataclasses import replace

import psutil
from confluent_kafka import Producer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests.benchmarks.rivals import KEYS, Ours, plan_over, scene, until_read

from penstock.pipelines.model import after_watermark, every
from penstock.pipelines.plan.windows import Fixed

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


def main(rate: int = 300, seconds: int = 5) -> None:
    """Write a stretch, wait until it is in the table, look, and so on for an hour."""
    plan = plan_over(
        TOPIC, Fixed(10_000), "retracting", after_watermark(early=every("10 seconds")), bound=1_000
    )
    plan = replace(plan, stages=(replace(plan.stage, lateness=60_000),))
    seen: list[tuple[float, float]] = []
    with scene() as one:
        one.broker.create_topic(TOPIC, 2)
        producer = Producer({"bootstrap.servers": one.broker.bootstrap, "linger.ms": 2, "log_level": 0})
        rival = Ours(one, plan)
        rival.start()
        sent = 0
        for stretch in track(range(HOUR // seconds), "an hour", console=Console(stderr=True), transient=True):
            for number in range(rate * seconds):
                at = BEGAN + stretch * seconds * 1_000 + number * 1_000 // rate
                record = {"device": f"d{number % KEYS}", "at": at, "temperature": number % 800 / 10}
                producer.produce(TOPIC, json.dumps(record).encode(), partition=number % 2)
                producer.poll(0)
            producer.flush()
            sent += rate * seconds
            until_read(rival, sent)
            seen.append(held())
        rival.stop()
    table = Table("of the hour", "Python, MB", "Java, MB", title=f"{rate} records a second, {sent:,} in all")
    size = len(seen) // SLICES
    for part in range(SLICES):
        some = seen[part * size : (part + 1) * size]
        columns = [f"{statistics.median(one[which] for one in some):,.0f}" for which in (0, 1)]
        table.add_row(f"{part * 5} to {part * 5 + 5} min", *columns)
    Console().print(table)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
