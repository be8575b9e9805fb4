"""Record at a time: rule-based card alerts from topic to topic, in Spark's real-time mode and in micro-batches.

A stateless stream does not wait for windows, so its latency is that of the engine alone. Payments arrive at a
constant rate. The latency of an alert is the time between the broker timestamps of the payment and the alert. Both
streams run at the same time over the same payments. Each must emit every alert that plain Python finds, once.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.engine.diagrams import Curve, CurvePoint, render_curves
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PAYMENTS_TOPIC = "payments"
TRIGGER_MODES: Mapping[str, Mapping[str, str]] = {
    "record at a time": {"realTime": "30 seconds"},
    "micro-batches": {"processingTime": "0 seconds"},
}
PAYMENT_SCHEMA = "id STRING, card STRING, amount DOUBLE, online BOOLEAN"
WARM_UP_PAYMENTS, RECEIVE_TIMEOUT_S = 300, 90.0
PERCENTILES = [0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5]
ReceivedAlerts = list[tuple[dict[str, Any], int]]


def select_alerts(payments: "DataFrame") -> "DataFrame":
    """Return an alert for each suspicious payment: online, with a large amount."""
    parsed = payments.selectExpr(
        "key", f"from_json(CAST(value AS STRING), '{PAYMENT_SCHEMA}') AS p", "timestamp AS came"
    )
    alert_json = "to_json(struct(p.id AS payment, p.card AS card, unix_millis(came) AS came)) AS value"
    return parsed.where("p.online AND p.amount > 500").selectExpr("CAST(key AS STRING) AS key", alert_json)


def is_suspicious(payment: Mapping[str, Any]) -> bool:
    """Apply the same rule in Python."""
    return bool(payment["online"] and payment["amount"] > 500)


def create_payment(number: int) -> dict[str, Any]:
    """Return a payment; every third one is suspicious."""
    is_large = number % 3 == 0
    return {
        "id": f"p{number}",
        "card": f"c{number % 50}",
        "amount": 900.0 if is_large else 20.0,
        "online": is_large,
    }


def alerts_topic(mode: str) -> str:
    """Return the name of the alert topic of a mode."""
    return f"alerts-{mode.replace(' ', '-')}"


@dataclass(frozen=True)
class AlertRelay:
    """The streams of both modes, with their broker, Spark session and checkpoint folder."""

    session: "SparkSession"
    broker: LocalBroker
    folder: Path

    def create_topics(self, modes: Sequence[str]) -> None:
        """Create the topics; the broker sets the timestamps."""
        for topic in (PAYMENTS_TOPIC, *map(alerts_topic, modes)):
            self.broker.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})

    def start_query(self, mode: str) -> "StreamingQuery":
        """Start the stream in a mode."""
        reader = self.session.readStream.format("kafka").option(
            "kafka.bootstrap.servers", self.broker.bootstrap
        )
        writer = (
            select_alerts(
                reader.option("subscribe", PAYMENTS_TOPIC).option("startingOffsets", "earliest").load()
            )
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self.broker.bootstrap)
            .option("topic", alerts_topic(mode))
            .option("checkpointLocation", str(self.folder / alerts_topic(mode)))
            .outputMode("update")
        )
        return writer.trigger(**TRIGGER_MODES[mode]).start()

    def send_payments(self, first: int, count: int, rate: float) -> None:
        """Send payments at a constant rate; with rate 0, as fast as possible."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 0})
        started_s = time.monotonic()
        for number in range(first, first + count):
            fields = create_payment(number)
            producer.produce(PAYMENTS_TOPIC, json.dumps(fields).encode(), fields["card"].encode())
            producer.poll(0)
            if rate:
                time.sleep(max(started_s + (number - first + 1) / rate - time.monotonic(), 0))
        undelivered = producer.flush(30)
        if undelivered:
            raise RuntimeError(
                f"{self.broker.bootstrap} did not acknowledge {undelivered} of {count} payments within 30 s"
            )

    def receive_alerts(self, mode: str, count: int) -> ReceivedAlerts:
        """Wait for this number of alerts, and return each with its broker timestamp."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": mode})
        consumer.assign([TopicPartition(alerts_topic(mode), 0, 0)])
        received: ReceivedAlerts = []
        deadline = time.monotonic() + RECEIVE_TIMEOUT_S
        try:
            while len(received) < count:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{mode}: {len(received)} of {count} alerts after {RECEIVE_TIMEOUT_S:g} s"
                    )
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    received.append((json.loads(message.value() or b""), message.timestamp()[1]))
        finally:
            consumer.close()
        return received


def count_expected_alerts(count: int) -> Counter[str]:
    """Return the IDs of the first `count` payments that plain Python finds suspicious."""
    return Counter(fields["id"] for fields in map(create_payment, range(count)) if is_suspicious(fields))


def run_both_modes(alert_relay: AlertRelay, rate: float, seconds: float) -> dict[str, ReceivedAlerts]:
    """Run both modes over the same payments, and return all alerts of each, including those of the warm-up.

    This must be the last use of the session, because it switches Spark's log off.
    """
    count = WARM_UP_PAYMENTS + round(rate * seconds)
    alert_relay.create_topics(list(TRIGGER_MODES))
    queries = [alert_relay.start_query(mode) for mode in TRIGGER_MODES]
    try:
        alert_relay.send_payments(0, WARM_UP_PAYMENTS, 0)
        for mode in TRIGGER_MODES:
            alert_relay.receive_alerts(mode, count_expected_alerts(WARM_UP_PAYMENTS).total())
        alert_relay.send_payments(WARM_UP_PAYMENTS, count - WARM_UP_PAYMENTS, rate)
        return {
            mode: alert_relay.receive_alerts(mode, count_expected_alerts(count).total())
            for mode in TRIGGER_MODES
        }
    finally:
        # Spark interrupts the running task and would log that as an error with a stack trace.
        alert_relay.session.sparkContext.setLogLevel("OFF")
        for query in queries:
            query.stop()


def compute_latencies(received_alerts: ReceivedAlerts) -> list[float]:
    """Return the latency of each alert after the warm-up, in milliseconds."""
    return [
        arrived_ms - alert["came"]
        for alert, arrived_ms in received_alerts[count_expected_alerts(WARM_UP_PAYMENTS).total() :]
    ]


def latency_at_percentile(latencies_ms: Sequence[float], percentile: float) -> float:
    """Return the latency at a percentile."""
    ordered = sorted(latencies_ms)
    return ordered[min(int(len(ordered) * percentile / 100), len(ordered) - 1)]


def render_latency_curves(latencies_by_mode: Mapping[str, Sequence[float]]) -> str:
    """Draw the latency distribution of both modes."""
    latency_curves = [
        Curve(
            mode,
            [
                CurvePoint(latency_at_percentile(mode_latencies, percentile), percentile)
                for percentile in PERCENTILES
            ],
        )
        for mode, mode_latencies in latencies_by_mode.items()
    ]
    axis_labels = ("milliseconds from a payment's arrival to its alert's", "percent of the alerts")
    return render_curves("Card alerts by rule, from topic to topic", axis_labels, latency_curves)
