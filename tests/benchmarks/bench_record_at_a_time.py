"""Record at a time: card alerts by rule from topic to topic, in Spark's real-time mode and in micro-batches.

A stateless stream has no windows to wait for, so its latency is that of the machinery alone. Payments come at an
even rate; an alert's latency is from the payment's arrival in its topic to the alert's in its own, by the clock of
the broker for both. Both streams run at the same time over the same payments, and each must give the alerts that
plain Python finds, once.
`python -m tests.benchmarks.bench_record_at_a_time [--rate N] [--seconds N] [--out PICTURE.svg]`.
"""

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table
from tests.benchmarks.rivals import Scene, scene

from penstock.pipelines.pictures import Curve, Point, curves

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

PAYMENTS = "payments"
MODES: Mapping[str, Mapping[str, str]] = {
    "record at a time": {"realTime": "30 seconds"},
    "micro-batches": {"processingTime": "0 seconds"},
}
FIELDS = "id STRING, card STRING, amount DOUBLE, online BOOLEAN"
WARM_UP, PATIENCE_S = 300, 90.0
SHARES = [0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5]


def alerts(payments: "DataFrame") -> "DataFrame":
    """Payments that a rule finds odd, each as an alert: online, and much."""
    read = payments.selectExpr(
        "key", f"from_json(CAST(value AS STRING), '{FIELDS}') AS p", "timestamp AS came"
    )
    told = "to_json(struct(p.id AS payment, p.card AS card, unix_millis(came) AS came)) AS value"
    return read.where("p.online AND p.amount > 500").selectExpr("CAST(key AS STRING) AS key", told)


def is_odd(payment: Mapping[str, Any]) -> bool:
    """The same rule in Python."""
    return bool(payment["online"] and payment["amount"] > 500)


def payment(number: int) -> dict[str, Any]:
    """Every third payment is odd."""
    odd = number % 3 == 0
    return {"id": f"p{number}", "card": f"c{number % 50}", "amount": 900.0 if odd else 20.0, "online": odd}


def topic_of(mode: str) -> str:
    """The topic of a mode's alerts."""
    return f"alerts-{mode.replace(' ', '-')}"


def start(one: Scene, mode: str) -> "StreamingQuery":
    """Start the stream in a mode."""
    broker = one.broker.bootstrap
    reader = one.session.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    writer = (
        alerts(reader.option("subscribe", PAYMENTS).option("startingOffsets", "earliest").load())
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("topic", topic_of(mode))
        .option("checkpointLocation", str(one.fresh("relay") / "checkpoint"))
        .outputMode("update")
    )
    return writer.trigger(**MODES[mode]).start()  # type: ignore[call-overload]


def send(one: Scene, first: int, count: int, rate: float) -> None:
    """Send payments at an even rate; with 0 as fast as it can be."""
    producer = Producer({"bootstrap.servers": one.broker.bootstrap, "linger.ms": 0})
    began = time.monotonic()
    for number in range(first, first + count):
        told = payment(number)
        producer.produce(PAYMENTS, json.dumps(told).encode(), told["card"].encode())
        producer.poll(0)
        if rate:
            time.sleep(max(began + (number - first + 1) / rate - time.monotonic(), 0))
    assert producer.flush(30) == 0


def received(one: Scene, mode: str, count: int) -> list[tuple[dict[str, Any], int]]:
    """Wait for so many alerts, and return each with the moment at which the broker had it."""
    consumer = Consumer({"bootstrap.servers": one.broker.bootstrap, "group.id": mode})
    consumer.assign([TopicPartition(topic_of(mode), 0, 0)])
    found: list[tuple[dict[str, Any], int]] = []
    deadline = time.monotonic() + PATIENCE_S
    try:
        while len(found) < count:
            assert time.monotonic() < deadline, (
                f"{mode}: {len(found)} of {count} alerts after {PATIENCE_S:g} s"
            )
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append((json.loads(message.value() or b""), message.timestamp()[1]))
    finally:
        consumer.close()
    return found


def measured(rate: float, seconds: float) -> dict[str, list[float]]:
    """Run both modes, and return the latencies of each after a warm-up; AssertionError where alerts are wrong."""
    count = WARM_UP + round(rate * seconds)
    expected = Counter(one["id"] for one in map(payment, range(count)) if is_odd(one))
    latencies: dict[str, list[float]] = {}
    with scene() as one:
        for topic in (PAYMENTS, *map(topic_of, MODES)):
            one.broker.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})
        queries = [start(one, mode) for mode in MODES]
        try:
            send(one, 0, WARM_UP, 0)
            for mode in MODES:
                received(one, mode, WARM_UP // 3)
            send(one, WARM_UP, count - WARM_UP, rate)
            for mode in MODES:
                found = received(one, mode, expected.total())
                assert Counter(alert["payment"] for alert, _ in found) == expected, mode
                latencies[mode] = [at - alert["came"] for alert, at in found[WARM_UP // 3 :]]
        finally:
            for query in queries:
                query.stop()
    return latencies


def at_share(latencies: Sequence[float], percent: float) -> float:
    """The latency that so many percent of the alerts are within."""
    ordered = sorted(latencies)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def drawn(latencies: Mapping[str, Sequence[float]]) -> str:
    """Both curves: which share of the alerts came within how long."""
    lines = [
        Curve(mode, [Point(at_share(took, share), share) for share in SHARES])
        for mode, took in latencies.items()
    ]
    words = ("milliseconds from a payment's arrival to its alert's", "percent of the alerts")
    return curves("Card alerts by rule, from topic to topic", words, lines)


def main(rate: float, seconds: float, out: Path | None) -> None:
    """Print a row for each mode, and draw both."""
    latencies = measured(rate, seconds)
    table = Table(
        "", "p50, ms", "p90, ms", "p99, ms", "alerts", title=f"{rate:g} payments/s for {seconds:g} s"
    )
    for mode, took in latencies.items():
        row = (f"{at_share(took, share):.0f}" for share in (50, 90, 99))
        table.add_row(mode, *row, f"{len(took):,}")
    Console().print(table)
    medians = [statistics.median(took) for took in latencies.values()]
    Console().print(f"record at a time takes {medians[0] / medians[1]:.2f} of the time of micro-batches")
    if out is not None:
        out.write_text(drawn(latencies), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    main(chosen.rate, chosen.seconds, chosen.out)
