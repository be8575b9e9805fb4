import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.ingestion.topic_reading import read_topic
from tests.ingestion.topics_for_tests import sensors_contract

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.feed import Feed, FeedLimits, FeedProgress
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.ledger import read_addresses
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
LOOKS, SETTLED = 20, 8


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_while_the_broker_is_away_a_feed_waits_and_says_so_and_takes_no_more_memory(
    own_broker: LocalBroker, tmp_path: Path
):
    contract = sensors_contract("pressed")
    ensure_topics(own_broker.bootstrap, [contract])
    stop, waits, memory = threading.Event(), [], []

    def progress(now: FeedProgress) -> None:
        if not killed.is_set() and now.acknowledged_records > 20_000:
            own_broker.kill()
            killed.set()
        elif killed.is_set() and now.broker_error and len(waits) < LOOKS:
            if waits and now.acknowledged_records > waits[-1].acknowledged_records:
                waits.clear()  # the broker had answered before it was killed, which may make room
                memory.clear()
            waits.append(now)
            memory.append(psutil.Process().memory_info().rss)
            if len(waits) == LOOKS:
                own_broker.start()
        elif len(waits) == LOOKS and now.acknowledged_records > waits[-1].sent_records:
            stop.set()

    killed = threading.Event()
    feed = Feed(
        GeneratorSource(SensorGenerator(3), contract, now_ms),
        contract,
        own_broker.bootstrap,
        tmp_path / "feed",
        now_ms,
    )
    summary = feed.run(stop, progress, FeedLimits(finish_ms=60_000))
    # The last answer of the broker may have made room that was filled at first.
    assert len({now.sent_records for now in waits[SETTLED:]}) == 1
    assert max(memory[SETTLED:]) - memory[SETTLED] < 20_000_000
    assert summary.complete
    assert len(read_topic(own_broker.bootstrap, "pressed")) == summary.acknowledged_until
    assert sum(1 for _ in read_addresses(tmp_path / "feed")) == summary.acknowledged_until
