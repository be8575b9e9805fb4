import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.ingestion.topic_contracts import sensors_contract
from tests.ingestion.topic_reading import read_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.feed import Feed, FeedLimits, FeedProgress
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.ledger import read_addresses
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
SAMPLE_COUNT, SETTLED_SAMPLE = 20, 8


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_feed_without_its_broker_reports_the_wait_in_bounded_memory(
    own_broker: LocalBroker, tmp_path: Path
):
    contract = sensors_contract("backpressure")
    ensure_topics(own_broker.bootstrap, [contract])
    stop, samples, memory = threading.Event(), [], []

    def observe(progress: FeedProgress) -> None:
        if not killed.is_set() and progress.acknowledged_records > 20_000:
            own_broker.kill()
            killed.set()
        elif killed.is_set() and progress.broker_error and len(samples) < SAMPLE_COUNT:
            if samples and progress.acknowledged_records > samples[-1].acknowledged_records:
                samples.clear()  # the last answer of the broker freed space in flight
                memory.clear()
            samples.append(progress)
            memory.append(psutil.Process().memory_info().rss)
            if len(samples) == SAMPLE_COUNT:
                own_broker.start()
        elif len(samples) == SAMPLE_COUNT and progress.acknowledged_records > samples[-1].sent_records:
            stop.set()

    killed = threading.Event()
    feed = Feed(
        GeneratorSource(SensorGenerator(3), contract, now_ms),
        contract,
        own_broker.bootstrap,
        tmp_path / "feed",
        now_ms,
    )
    summary = feed.run(stop, observe, FeedLimits(finish_ms=60_000))
    # Space that the last answer of the broker freed may be filled at first.
    assert len({progress.sent_records for progress in samples[SETTLED_SAMPLE:]}) == 1
    assert max(memory[SETTLED_SAMPLE:]) - memory[SETTLED_SAMPLE] < 20_000_000
    assert summary.complete
    assert len(read_topic(own_broker.bootstrap, "backpressure")) == summary.acknowledged_until
    assert sum(1 for _ in read_addresses(tmp_path / "feed")) == summary.acknowledged_until
