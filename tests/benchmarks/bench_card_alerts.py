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

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.generators import evenly
from penstock.ingestion.generators.cards import Cards
from penstock.ingestion.topics import ensure_topics
from penstock.pipelines import catalog
from penstock.pipelines.batch.right import Right
from penstock.pipelines.spark.stream import Stream, StreamConfig
from penstock.platform.clock import now_ms
from penstock.platform.local_spark import spark_session
from penstock.platform.settings import load_settings

RATES = (200.0, 1_000.0)
WARM_SECONDS, SECONDS = 15, 45
ALERTS = "card-alerts"


class Listener(threading.Thread):
    """Notes when each alert came, and when its payment was made."""

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
        self._consumer.subscribe([ALERTS])

    def run(self) -> None:
        """Listen until it is told to end."""
        while not self._told_to_end.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() or not (value := message.value()):
                continue
            told = json.loads(value)
            if told["kind"] == "insert":
                self.seen.append((now_ms(), int(told["window_start"])))
        self._consumer.close()

    def end(self) -> None:
        """Have it end, and wait for that."""
        self._told_to_end.set()
        self.join()


def pay(bootstrap: str, rate: float, seed: int) -> int:
    """Send payments at a rate, and return when the first that counts was sent."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    began, sent = time.monotonic(), 0
    counts_from = now_ms() + WARM_SECONDS * 1_000
    payments = Cards(seed).records(0, evenly(0, 1))
    while (passed := time.monotonic() - began) < WARM_SECONDS + SECONDS:
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
        spark_session(settings, "alerts") as session,
    ):
        ensure_topics(broker.bootstrap, [load_contract("cards"), load_contract(ALERTS)])
        config = StreamConfig(broker.bootstrap, Path(folder, "stream"), Path(folder, "warehouse"))
        plan = catalog.load("card_alerts")
        stream = Stream(plan, session, config, Right(plan.name, 1, lambda: True), lambda _: None, now_ms)
        stream.start()
        for seed, rate in enumerate(rates, start=1):
            listener = Listener(broker.bootstrap)
            listener.start()
            counts_from = pay(broker.bootstrap, rate, seed)
            time.sleep(3)
            listener.end()
            print(f"{rate:,.0f} payments a second: {len(listener.seen)} alerts", file=sys.stderr)
            waits = np.array([came - paid for came, paid in listener.seen if paid >= counts_from])
            figures = (f"{value:,.0f}" for value in (*np.percentile(waits, (50, 99)), waits.max()))
            table.add_row(f"{rate:,.0f}", str(len(waits)), *figures)
        stream.drain()
    Console().print(table)


if __name__ == "__main__":
    main(tuple(map(float, sys.argv[1:])) or RATES)
