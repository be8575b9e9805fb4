import dataclasses
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.ingestion.topic_reading import ids, whole_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.errors import LedgerError, TopicsError
from penstock.ingestion.feed import Feed, Limits, Summary
from penstock.ingestion.generators import Sensors
from penstock.ingestion.ledger import Ledger, read_addresses, read_state
from penstock.ingestion.producer import Batch, Window
from penstock.ingestion.sources import Generated
from penstock.ingestion.sources.source import Repeatable
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
GOOD = b'{"id":"%d","device":"d%d","site":"s","at":1700000000000,"temperature":21.5}'
BROKEN = {
    b'{"id":"x","device"': "malformed",
    b'{"id":"x","device":"d","site":"s","at":"noon"}': "wrong type",
    b'{"id":"x","device":"d","site":"s"}': "missing field",
    b'{"id":"x","device":"d","site":"s","at":1,"colour":"red"}': "unknown field",
    b'{"id":"\xff","device":"d","site":"s","at":1}': "invalid utf-8",
    b'{"id":"' + b"x" * 10_000_000 + b'"}': "too large",
    b"[" * 100_000: "wrong type",
    b"": "malformed",
}


class Given(Repeatable):
    """A source of given values, in batches of a size."""

    def __init__(self, values: list[bytes], size: int = 700) -> None:
        self.description = "given values"
        self._values = values
        self._size = size

    def read(self, position: Any | None) -> Iterator[Batch]:
        for first in range(position or 0, len(self._values), self._size):
            yield Batch(self._values[first : first + self._size], first)


TICKS = itertools.count(1_700_000_000_000)


def clock() -> int:
    return next(TICKS)


def topic_of(broker: LocalBroker, name: str) -> Contract:
    contract = dataclasses.replace(load_contract("sensors"), topic=name)
    ensure_topics(broker.bootstrap, [contract])
    return contract


def run(broker: LocalBroker, contract: Contract, source: Any, ledger: Path, **options: Any) -> Summary:
    limits = Limits(**{"finish_ms": 10**9, **options})
    return Feed(source, contract, broker.bootstrap, ledger, clock).run(Event(), limits=limits)


def test_broken_records_go_to_the_dead_letters_with_the_reason_and_their_bytes(
    broker: LocalBroker, tmp_path: Path
):
    contract = topic_of(broker, "broken")
    values = [GOOD % (n, n % 5) for n in range(5_000)]
    for place, value in enumerate(BROKEN):
        values.insert(place * 600, value)
    summary = run(broker, contract, Given(values), tmp_path / "feed")
    assert (summary.acknowledged, summary.dead_letters) == (len(values), len(BROKEN))
    good, dead = whole_topic(broker.bootstrap, "broken"), whole_topic(broker.bootstrap, "broken.dead-letters")
    assert {record.value: record.headers["penstock-reason"].decode() for record in dead} == BROKEN
    assert sorted(record.value for record in good) == sorted(v for v in values if v not in BROKEN)
    at = {(a.topic, a.partition, a.offset): a.sequence for a in read_addresses(tmp_path / "feed")}
    for record in dead:
        assert values[at["broken.dead-letters", record.partition, record.offset]] == record.value
        assert record.headers["penstock-producer"] == b"feed"


def test_a_second_run_continues_where_the_first_stopped(broker: LocalBroker, tmp_path: Path):
    contract = topic_of(broker, "continued")
    source = Given([GOOD % (n, n % 5) for n in range(3_000)])
    assert run(broker, contract, source, tmp_path / "feed", count=1_234).reached == 1_234
    assert run(broker, contract, source, tmp_path / "feed").reached == 3_000
    assert run(broker, contract, source, tmp_path / "feed").acknowledged == 0
    assert sorted(map(int, ids(whole_topic(broker.bootstrap, "continued")))) == list(range(3_000))


def test_two_producers_of_one_topic_know_their_own_addresses(broker: LocalBroker, tmp_path: Path):
    contract = topic_of(broker, "shared")
    feeds = [
        Feed(
            Generated(Sensors(seed), contract, clock),
            contract,
            broker.bootstrap,
            tmp_path / str(seed),
            clock,
            window=Window(records=2_000, chunk_records=300),
        )
        for seed in (1, 2)
    ]
    threads = [
        threading.Thread(
            target=feed.run, args=(Event(),), kwargs={"limits": Limits(count=20_000, finish_ms=10**9)}
        )
        for feed in feeds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = {(r.partition, r.offset): json.loads(r.value)["id"] for r in whole_topic(broker.bootstrap, "shared")}
    for seed in (1, 2):
        for address in read_addresses(tmp_path / str(seed)):
            assert at.pop((address.partition, address.offset)) == f"{seed}-{address.sequence}"
    assert at == {}


def test_a_ledger_has_one_writer(tmp_path: Path):
    ledger = Ledger(tmp_path / "feed", clock)
    with pytest.raises(LedgerError, match="another process"):
        Ledger(tmp_path / "feed", clock)
    ledger.close(in_order=True)
    Ledger(tmp_path / "feed", clock).close(in_order=True)


def test_a_name_used_for_another_source_is_refused(broker: LocalBroker, tmp_path: Path):
    contract = topic_of(broker, "named")
    run(broker, contract, Given([GOOD % (1, 1)]), tmp_path / "feed")
    with pytest.raises(LedgerError, match="given values"):
        run(broker, contract, Generated(Sensors(1), contract, clock), tmp_path / "feed", count=1)


def test_a_missing_topic_is_said_before_anything_is_sent(broker: LocalBroker, tmp_path: Path):
    contract = dataclasses.replace(load_contract("sensors"), topic="nowhere")
    with pytest.raises(TopicsError, match="penstock topics apply"):
        run(broker, contract, Given([GOOD % (1, 1)]), tmp_path / "feed")
    assert read_state(tmp_path / "feed").intents == []
