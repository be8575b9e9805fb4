"""From a payment to the alert about it in a topic: the shipped pipeline `card_alerts`, live, by real clocks.

Payments of the generator are sent at a rate, each stamped with the moment of its sending; a plain consumer, which
reads committed records only, looks at the clock when an alert comes.
`python -m tests.benchmarks.bench_card_alerts [RATE …]`.
"""

import json
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from confluent_kafka import Consumer, Producer
from rich.console import Console
from rich.table import Table

from penstock.core.clock import now_ms
from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.stream_config import StreamConfig
from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.cards import CardGenerator
from penstock.ingestion.topics import ensure_topics
from penstock.pipelines import catalog
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.settings import load_settings

RATES_PER_SECOND = (200.0, 1_000.0)
WARM_UP_SECONDS, MEASURE_SECONDS = 15, 45
ALERTS_TOPIC = "card-alerts"


class AlertListener(threading.Thread):
    """Records the time of each alert and of its payment."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[tuple[int, int]] = []
        self._told_to_end = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
            }
        )
        self._consumer.subscribe([ALERTS_TOPIC])

    def run(self) -> None:
        """Listen until `end` is called."""
        while not self._told_to_end.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() or not (value := message.value()):
                continue
            told = json.loads(value)
            if told["kind"] == "insert":
                self.seen.append((now_ms(), int(told["window_start"])))
        self._consumer.close()

    def end(self) -> None:
        """Stop listening, and wait for the end."""
        self._told_to_end.set()
        self.join()


def send_payments(bootstrap: str, rate: float, seed: int) -> int:
    """Send payments at a rate, and return when the first that counts was sent."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    began, sent = time.monotonic(), 0
    counts_from = now_ms() + WARM_UP_SECONDS * 1_000
    payments = CardGenerator(seed).generate_records(0, make_even_send_times(0, 1))
    while (passed := time.monotonic() - began) < WARM_UP_SECONDS + MEASURE_SECONDS:
        now = now_ms()
        for payment in islice(payments, int(passed * rate) - sent):
            fields = {**msgspec.to_builtins(payment), "at": now}
            producer.produce("cards", json.dumps(fields), key=fields["card"])
            sent += 1
        producer.poll(0)
        time.sleep(0.005)
    producer.flush()
    return counts_from


def main(rates: tuple[float, ...]) -> None:
    """Measure each rate on one broker and in one session, and print a row for each."""
    settings = load_settings().settings
    table = Table("payments/s", "alerts", "p50, ms", "p99, ms", "longest, ms")
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder, "broker"), ensure_jars(settings.jars, ["kafka"])) as broker,
        open_command_spark(settings, "alerts") as session,
    ):
        ensure_topics(broker.bootstrap, [load_contract("cards"), load_contract(ALERTS_TOPIC)])
        config = StreamConfig(BrokerAccess(broker.bootstrap), Path(folder, "warehouse"))
        plan = catalog.load_plan("card_alerts")
        stream = LiveStream(
            plan,
            session,
            Path(folder, "stream"),
            config,
            WriteFence(plan.name, 1, lambda: True),
            lambda _: None,
            now_ms,
        )
        stream.start()
        for seed, rate in enumerate(rates, start=1):
            listener = AlertListener(broker.bootstrap)
            listener.start()
            counts_from = send_payments(broker.bootstrap, rate, seed)
            time.sleep(3)
            listener.end()
            print(f"{rate:,.0f} payments a second: {len(listener.seen)} alerts", file=sys.stderr)
            waits = np.array([came - paid for came, paid in listener.seen if paid >= counts_from])
            figures = (f"{value:,.0f}" for value in (*np.percentile(waits, (50, 99)), waits.max()))
            table.add_row(f"{rate:,.0f}", str(len(waits)), *figures)
        stream.drain()
    Console().print(table)


if __name__ == "__main__":
    main(tuple(map(float, sys.argv[1:])) or RATES_PER_SECOND)
