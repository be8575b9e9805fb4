"""From record to row in Delta while records flow: the engine against hand-written native windows, in turns.

Every record of the measured seconds counts, from its own timestamp to the commit of the batch that holds it. Each
repeat is a stretch of a stream that has run for a while; engine and rival take turns over topics of their own.
`python -m tests.benchmarks.bench_pipelines_live [records a second …]`.
"""

import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np
from confluent_kafka import Consumer, TopicPartition
from rich.console import Console
from rich.table import Table
from tests.benchmarks.rivals import Native, Ours, Scene, load, plan_over, scene, until_read

from penstock.pipelines.plan.windows import Fixed

RATES = (5_000, 50_000)
REPEATS = 5
WARM_SECONDS = 12
STRETCH_SECONDS = 6
Latencies = np.ndarray[tuple[int], np.dtype[np.float64]]


def timestamps(one: Scene, topic: str, partition: int, records: int) -> Latencies:
    """When each record of a partition was made, in milliseconds."""
    consumer = Consumer(
        {"bootstrap.servers": one.broker.bootstrap, "group.id": "bench", "fetch.min.bytes": 65536}
    )
    found = np.empty(records)
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        have = 0
        while have < records:
            for message in consumer.consume(10_000, timeout=5):
                found[have] = message.timestamp()[1]
                have += 1
    finally:
        consumer.close()
    return found


def latencies(one: Scene, topic: str, rival: Ours | Native) -> list[Latencies]:
    """Each stretch's latencies, in milliseconds."""
    seen: dict[int, list[tuple[int, int, float]]] = {}
    for at, spans in rival.committed:
        for partition, start, end in spans:
            seen.setdefault(partition, []).append((start, end, at * 1000))
    stretches: list[list[Latencies]] = [[] for _ in range(REPEATS)]
    for partition, batches in seen.items():
        made = timestamps(one, topic, partition, batches[-1][1])
        visible = np.concatenate([np.full(end - start, at) for start, end, at in batches])
        which = ((made - made[0]) / 1000 - WARM_SECONDS) // STRETCH_SECONDS
        for stretch in range(REPEATS):
            stretches[stretch].append((visible - made)[which == stretch])
    return [np.concatenate(parts) for parts in stretches]


def measure(one: Scene, rate: int, kind: str) -> list[Latencies]:
    """Run a stream while records flow."""
    topic = f"live-{kind}-{rate}"
    one.broker.create_topic(topic, 2)
    rival: Ours | Native = (
        Ours(one, plan_over(topic, Fixed(10_000))) if kind == "ours" else Native(one, topic)
    )
    rival.start()
    records = rate * (WARM_SECONDS + STRETCH_SECONDS * REPEATS)
    source = load(one.broker.bootstrap, topic, rate, records)
    time.sleep(WARM_SECONDS)
    until_read(rival, records)
    rival.stop()
    source.wait()
    return latencies(one, topic, rival)


def spread(values: Sequence[float], unit: str = " ms") -> str:
    """The median, and the least and greatest."""
    form = ".2f" if unit == "" else ".0f"
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}}){unit}"


def main(rates: Sequence[int]) -> None:
    """Measure both at each rate, and print a table."""
    table = Table("records/s", "", "ours", "native", "ours / native", title="record to row visible in Delta")
    with scene() as one:
        for rate in rates:
            found = {kind: measure(one, rate, kind) for kind in ("ours", "native")}
            for quantile in (50, 99):
                mine, theirs = (
                    [float(np.percentile(stretch, quantile)) for stretch in found[kind]]
                    for kind in ("ours", "native")
                )
                ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
                table.add_row(f"{rate:,}", f"p{quantile}", spread(mine), spread(theirs), spread(ratios, ""))
    Console().print(table)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or RATES)
