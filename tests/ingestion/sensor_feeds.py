"""Topics filled with generated sensor readings."""

import threading
import time
from pathlib import Path

from tests.ingestion.topic_contracts import sensors_contract
from tests.ingestion.topic_reading import read_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def feed_topic(broker: LocalBroker, topic: str, ledger: Path, number: int) -> list[bytes]:
    contract = sensors_contract(topic)
    ensure_topics(broker.bootstrap, [contract])
    source = GeneratorSource(SensorGenerator(5), contract, now_ms)
    summary = Feed(source, contract, broker.bootstrap, ledger, now_ms).run(
        threading.Event(), limits=FeedLimits(count=number, finish_ms=30_000)
    )
    assert summary.acknowledged_records == number
    return sorted(record.value for record in read_topic(broker.bootstrap, topic))
