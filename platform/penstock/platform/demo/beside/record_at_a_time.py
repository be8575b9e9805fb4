"""Record at a time: card alerts by rule from topic to topic, in Spark's real-time mode and in micro-batches.

A stateless stream has no windows to wait for, so its latency is that of the machinery alone. Payments come at an
even rate; an alert's latency is from the payment's arrival in its topic to the alert's in its own, by the clock of
the broker for both. Both streams run at the same time over the same payments, and each must give the alerts that
plain Python finds, once.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines.pictures import Curve, Point, curves
from penstock.platform.demo.beside.compared import Compared, Setting, Tell, in_words
from penstock.platform.errors import DemoError
from penstock.platform.local_spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PAYMENTS = "payments"
RATE, SECONDS = 200.0, 15.0
MODES: Mapping[str, Mapping[str, str]] = {
    "record at a time": {"realTime": "30 seconds"},
    "micro-batches": {"processingTime": "0 seconds"},
}
FIELDS = "id STRING, card STRING, amount DOUBLE, online BOOLEAN"
WARM_UP, PATIENCE_S = 300, 90.0
SHARES = [0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5]
Alerts = list[tuple[dict[str, Any], int]]


def alerts(payments: "DataFrame") -> "DataFrame":
    """Return payments that a rule finds odd, each as an alert: online, and much."""
    read = payments.selectExpr(
        "key", f"from_json(CAST(value AS STRING), '{FIELDS}') AS p", "timestamp AS came"
    )
    told = "to_json(struct(p.id AS payment, p.card AS card, unix_millis(came) AS came)) AS value"
    return read.where("p.online AND p.amount > 500").selectExpr("CAST(key AS STRING) AS key", told)


def is_odd(payment: Mapping[str, Any]) -> bool:
    """Tell the same by a rule in Python."""
    return bool(payment["online"] and payment["amount"] > 500)


def payment(number: int) -> dict[str, Any]:
    """Return a payment; every third is odd."""
    odd = number % 3 == 0
    return {"id": f"p{number}", "card": f"c{number % 50}", "amount": 900.0 if odd else 20.0, "online": odd}


def topic_of(mode: str) -> str:
    """Return the topic of a mode's alerts."""
    return f"alerts-{mode.replace(' ', '-')}"


@dataclass(frozen=True)
class Relay:
    """The streams of both modes, on one broker and in one session, with a folder for what they keep."""

    session: "SparkSession"
    broker: LocalBroker
    folder: Path

    def topics(self, modes: Sequence[str]) -> None:
        """Make the topics; the broker says when a record came."""
        for topic in (PAYMENTS, *map(topic_of, modes)):
            self.broker.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})

    def start(self, mode: str) -> "StreamingQuery":
        """Start the stream in a mode."""
        reader = self.session.readStream.format("kafka").option(
            "kafka.bootstrap.servers", self.broker.bootstrap
        )
        writer = (
            alerts(reader.option("subscribe", PAYMENTS).option("startingOffsets", "earliest").load())
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self.broker.bootstrap)
            .option("topic", topic_of(mode))
            .option("checkpointLocation", str(self.folder / topic_of(mode)))
            .outputMode("update")
        )
        return writer.trigger(**MODES[mode]).start()

    def send(self, first: int, count: int, rate: float) -> None:
        """Send payments at an even rate; with 0 as fast as it can be."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 0})
        began = time.monotonic()
        for number in range(first, first + count):
            told = payment(number)
            producer.produce(PAYMENTS, json.dumps(told).encode(), told["card"].encode())
            producer.poll(0)
            if rate:
                time.sleep(max(began + (number - first + 1) / rate - time.monotonic(), 0))
        left = producer.flush(30)
        if left:
            raise DemoError(f"{self.broker.bootstrap} did not take {left} of {count} payments within 30 s")

    def received(self, mode: str, count: int) -> Alerts:
        """Wait for so many alerts, and return each with the moment at which the broker had it."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": mode})
        consumer.assign([TopicPartition(topic_of(mode), 0, 0)])
        found: Alerts = []
        deadline = time.monotonic() + PATIENCE_S
        try:
            while len(found) < count:
                if time.monotonic() > deadline:
                    raise DemoError(f"{mode}: {len(found)} of {count} alerts after {PATIENCE_S:g} s")
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    found.append((json.loads(message.value() or b""), message.timestamp()[1]))
        finally:
            consumer.close()
        return found


def expected(count: int) -> Counter[str]:
    """Return which of the first payments plain Python finds odd."""
    return Counter(one["id"] for one in map(payment, range(count)) if is_odd(one))


def told_by_both(relay: Relay, rate: float, seconds: float, tell: Tell) -> dict[str, Alerts]:
    """Run both modes at once over the same payments, and return all alerts of each; the first are a warm-up.

    It is the last thing that the session is used for: its log is switched off.
    """
    count = WARM_UP + round(rate * seconds)
    relay.topics(list(MODES))
    queries = [relay.start(mode) for mode in MODES]
    try:
        tell("both streams warm up")
        relay.send(0, WARM_UP, 0)
        for mode in MODES:
            relay.received(mode, expected(WARM_UP).total())
        tell(f"{rate:g} payments/s for {seconds:g} s")
        relay.send(WARM_UP, count - WARM_UP, rate)
        return {mode: relay.received(mode, expected(count).total()) for mode in MODES}
    finally:
        # A task that does not end is interrupted, which Spark tells as an error, with all of its stack.
        relay.session.sparkContext.setLogLevel("OFF")
        for query in queries:
            query.stop()


def latencies(found: Alerts) -> list[float]:
    """Return how long each alert took after the warm-up, in milliseconds."""
    return [at - alert["came"] for alert, at in found[expected(WARM_UP).total() :]]


def at_share(latencies: Sequence[float], percent: float) -> float:
    """Return the latency that so many percent of the alerts are within."""
    ordered = sorted(latencies)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def drawn(latencies: Mapping[str, Sequence[float]]) -> str:
    """Draw both curves: which share of the alerts came within how long."""
    lines = [
        Curve(mode, [Point(at_share(took, share), share) for share in SHARES])
        for mode, took in latencies.items()
    ]
    words = ("milliseconds from a payment's arrival to its alert's", "percent of the alerts")
    return curves("Card alerts by rule, from topic to topic", words, lines)


def run(setting: Setting) -> Compared:
    """Show both modes at work, and draw their latencies."""
    shutil.rmtree(setting.folder, ignore_errors=True)
    setting.folder.mkdir(parents=True)
    settings = setting.settings
    with setting.step("a broker of the demonstration's own") as tell:
        jars = ensure_jars(settings.jars, ["kafka"], lambda done, total, _: tell(f"jar {done} of {total}"))
        broker = LocalBroker.in_directory(setting.folder / "broker", jars).start()
    try:
        with spark_session(settings, "demo") as session, setting.step("both modes, side by side") as tell:
            found = told_by_both(Relay(session, broker, setting.folder), RATE, SECONDS, tell)
    finally:
        broker.stop()
    return compared(found, setting.folder / "record_at_a_time.svg")


def compared(found: Mapping[str, Alerts], picture: Path) -> Compared:
    """Say what both modes told, and draw how long it took."""
    wanted = expected(WARM_UP + round(RATE * SECONDS))
    right = {mode: Counter(alert["payment"] for alert, _ in told) == wanted for mode, told in found.items()}
    took = {mode: latencies(told) for mode, told in found.items()}
    picture.write_text(drawn(took), "utf-8")
    rows = [
        (mode, len(each), *(f"{at_share(each, share):.0f}" for share in (50, 90, 99)), in_words(right[mode]))
        for mode, each in took.items()
    ]
    return Compared(
        columns=("mode", "alerts", "p50, ms", "p90, ms", "p99, ms", "as plain Python finds them"),
        rows=rows,
        said=f"{RATE:g} payments/s for {SECONDS:g} s, from a payment's arrival in its topic to its alert's.",
        equal=all(right.values()),
        result=picture,
        page=Path("pipelines/docs/record_at_a_time.md"),
    )
