import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.ingestion.topic_reading import whole_topic
from tests.ingestion.topics_for_tests import sensors_like

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.feed import Feed, Limits, Progress
from penstock.ingestion.generators import Sensors
from penstock.ingestion.ledger import read_addresses
from penstock.ingestion.sources import Generated
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
LOOKS, SETTLED = 20, 8


def clock() -> int:
    return time.time_ns() // 1_000_000


def test_while_the_broker_is_away_a_feed_waits_and_says_so_and_takes_no_more_memory(
    own_broker: LocalBroker, tmp_path: Path
):
    contract = sensors_like("pressed")
    ensure_topics(own_broker.bootstrap, [contract])
    stop, waits, memory = threading.Event(), [], []

    def progress(now: Progress) -> None:
        if not killed.is_set() and now.acknowledged > 20_000:
            own_broker.kill()
            killed.set()
        elif killed.is_set() and now.heard and len(waits) < LOOKS:
            if waits and now.acknowledged > waits[-1].acknowledged:
                waits.clear()  # the broker had answered before it was killed, which may make room
                memory.clear()
            waits.append(now)
            memory.append(psutil.Process().memory_info().rss)
            if len(waits) == LOOKS:
                own_broker.start()
        elif len(waits) == LOOKS and now.acknowledged > waits[-1].sent:
            stop.set()

    killed = threading.Event()
    feed = Feed(
        Generated(Sensors(3), contract, clock), contract, own_broker.bootstrap, tmp_path / "feed", clock
    )
    summary = feed.run(stop, progress, Limits(finish_ms=60_000))
    # The last answer of the broker may have made room that was filled at first.
    assert len({now.sent for now in waits[SETTLED:]}) == 1
    assert max(memory[SETTLED:]) - memory[SETTLED] < 20_000_000
    assert summary.complete
    assert len(whole_topic(own_broker.bootstrap, "pressed")) == summary.reached
    assert sum(1 for _ in read_addresses(tmp_path / "feed")) == summary.reached
