"""Measures the latency of the shipped pipeline `card_alerts`: from sending a payment to receiving its alert.

Generated payments are sent at a constant rate, with the send time as their event time. A consumer that reads only
committed records notes the time at which each alert arrives.
`python -m tests.benchmarks.bench_card_alerts [RATE …]`.
"""

import argparse
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
    """Records the arrival time of each alert and the time of its payment."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.received: list[tuple[int, int]] = []
        self._stop_requested = threading.Event()
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
        """Receive alerts until `stop` is called."""
        while not self._stop_requested.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() or not (value := message.value()):
                continue
            alert = json.loads(value)
            if alert["kind"] == "insert":
                self.received.append((now_ms(), int(alert["window_start"])))
        self._consumer.close()

    def stop(self) -> None:
        """Stop receiving, and wait for the thread to end."""
        self._stop_requested.set()
        self.join()


def send_payments(bootstrap: str, rate: float, seed: int) -> int:
    """Send payments at a rate, and return the time in milliseconds at which the warm-up ends."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    started_s, sent = time.monotonic(), 0
    warm_up_end_ms = now_ms() + WARM_UP_SECONDS * 1_000
    payments = CardGenerator(seed).generate_records(0, make_even_send_times(0, 1))
    while (elapsed_s := time.monotonic() - started_s) < WARM_UP_SECONDS + MEASURE_SECONDS:
        now = now_ms()
        for payment in islice(payments, int(elapsed_s * rate) - sent):
            fields = {**msgspec.to_builtins(payment), "at": now}
            producer.produce("cards", json.dumps(fields), key=fields["card"])
            sent += 1
        producer.poll(0)
        time.sleep(0.005)
    producer.flush()
    return warm_up_end_ms


def main(rates: tuple[float, ...]) -> None:
    """Measure each rate with one broker and one session, and print a row for each."""
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
            warm_up_end_ms = send_payments(broker.bootstrap, rate, seed)
            time.sleep(3)
            listener.stop()
            print(f"{rate:,.0f} payments/s: {len(listener.received)} alerts", file=sys.stderr)
            latencies_ms = np.array(
                [received - paid for received, paid in listener.received if paid >= warm_up_end_ms]
            )
            figures = (
                f"{value:,.0f}" for value in (*np.percentile(latencies_ms, (50, 99)), latencies_ms.max())
            )
            table.add_row(f"{rate:,.0f}", str(len(latencies_ms)), *figures)
        stream.drain()
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rates", nargs="*", type=float, default=RATES_PER_SECOND, metavar="RATE", help="payments per second"
    )
    arguments = parser.parse_args()
    main(tuple(arguments.rates))
