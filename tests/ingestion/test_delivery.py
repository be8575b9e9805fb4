import dataclasses
import itertools
import json
import random
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.ingestion.topic_reading import ids, whole_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, TopicLayout, load_contract
from penstock.ingestion.errors import DeliveryError, LedgerError, TopicsError
from penstock.ingestion.feed import Feed, Limits, Summary
from penstock.ingestion.generators import Sensors, evenly
from penstock.ingestion.ledger import Ledger, read_addresses, read_state
from penstock.ingestion.producer import Batch, Window, format_of
from penstock.ingestion.registry import FileRegistry
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
    b'{"id":"x","device":"d","site":"s","at":1,"humidity":' + b"[" * 100_000: "wrong type",
    b"": "malformed",
}


class Given(Repeatable):
    """A source of given values, in batches of a size."""

    def __init__(self, values: list[bytes], size: int = 700, encoded: bool = False) -> None:
        self.description = "given values"
        self._values = values
        self._size = size
        self._encoded = encoded

    def read(self, position: Any | None) -> Iterator[Batch]:
        for first in range(position or 0, len(self._values), self._size):
            yield Batch(self._values[first : first + self._size], first, encoded=self._encoded)


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


def test_broken_avro_goes_to_the_dead_letters_with_its_bytes(broker: LocalBroker, tmp_path: Path):
    contract = dataclasses.replace(topic_of(broker, "broken-avro"), encoding="avro")
    registry = FileRegistry(tmp_path / "registry")
    form = format_of(contract, registry)
    made = [form.encode(record) for record in islice(Sensors(1).records(0, evenly(0, 10)), 2_000)]
    broken = {
        made[0][:-1]: "malformed",
        b"\0\0\0\0\7" + made[0][5:]: "wrong schema",
        b"\1" + made[0][1:]: "wrong schema",
        made[0] + b"x" * 10_000_000: "too large",
        made[0].replace(b"device", b"\xff\xfevice"): "invalid utf-8",
    }
    values = list(made)
    for place, value in enumerate(broken):
        values.insert(place * 300, value)
    source = Given(values, encoded=True)
    feed = Feed(source, contract, broker.bootstrap, tmp_path / "feed", clock, registry)
    summary = feed.run(Event(), limits=Limits(finish_ms=10**9))
    assert (summary.acknowledged, summary.dead_letters) == (len(values), len(broken))
    dead = whole_topic(broker.bootstrap, "broken-avro.dead-letters")
    assert {record.value: record.headers["penstock-reason"].decode() for record in dead} == broken
    assert sorted(record.value for record in whole_topic(broker.bootstrap, "broken-avro")) == sorted(made)


def test_a_record_that_the_broker_refuses_stops_the_feed_with_the_sequence_it_reached(
    broker: LocalBroker, tmp_path: Path
):
    small = dataclasses.replace(
        load_contract("sensors"),
        topic="small",
        layout=TopicLayout(settings=(("max.message.bytes", "200000"),)),
    )
    ensure_topics(broker.bootstrap, [small])
    noise = random.Random(1).randbytes(200_000).hex().encode()
    values = [GOOD % (n, n % 5) for n in range(2_000)]
    values[1_200] = b'{"id":"1200","device":"d","site":"%s","at":1}' % noise
    source = Given(values, size=100)
    with pytest.raises(DeliveryError, match=r"refused a record: .* starting again resumes there") as stopped:
        run(broker, small, source, tmp_path / "feed")
    assert stopped.value.reached == read_state(tmp_path / "feed").reached <= 1_200
    roomy = dataclasses.replace(small, layout=TopicLayout(settings=(("max.message.bytes", "2000000"),)))
    ensure_topics(broker.bootstrap, [roomy])
    assert run(broker, roomy, source, tmp_path / "feed").reached == 2_000
    assert sorted(map(int, ids(whole_topic(broker.bootstrap, "small")))) == list(range(2_000))


def test_whatever_its_contract_lets_pass_the_topic_takes_with_its_key(broker: LocalBroker, tmp_path: Path):
    contract = dataclasses.replace(load_contract("sensors"), topic="heavy", max_bytes=3_000_000)
    ensure_topics(broker.bootstrap, [contract])
    chance = random.Random(2)

    def record(device_bytes: int, site_bytes: int) -> bytes:
        device, site = (chance.randbytes(size // 2).hex() for size in (device_bytes, site_bytes))
        return b'{"id":"x","device":"%s","site":"%s","at":1}' % (device.encode(), site.encode())

    rest = len(record(0, 0))
    fits = [record(1_400_000, 200_000 - rest), record(0, 3_000_000 - rest)]
    # One byte more than the contract allows in all, one that is too large with its key alone, and one too large
    # also for the dead letters.
    refused = [record(1_400_000, 200_002 - rest), record(1_600_000, 0), b"x" * 40_000_000]
    values = [*fits, *refused, GOOD % (1, 1)]
    summary = run(broker, contract, Given(values), tmp_path / "feed")
    assert (summary.acknowledged, summary.dead_letters) == (6, 3)
    assert {record.value for record in whole_topic(broker.bootstrap, "heavy")} == {*fits, values[-1]}
    first, second, cut = whole_topic(broker.bootstrap, "heavy.dead-letters")
    assert [first.value, second.value] == refused[:2]
    assert {letter.headers["penstock-reason"] for letter in (first, second, cut)} == {b"too large"}
    assert "penstock-whole-bytes" not in first.headers
    assert cut.headers["penstock-whole-bytes"] == b"40000000"
    assert len(cut.value) > 33_000_000
    assert cut.value == b"x" * len(cut.value)


def test_a_route_is_not_changed_while_records_are_in_doubt(broker: LocalBroker, tmp_path: Path):
    contract = topic_of(broker, "routed")
    source = Given([GOOD % (n, n % 5) for n in range(900)], size=300)
    run(broker, contract, source, tmp_path / "feed", count=300)
    ledger = Ledger(tmp_path / "feed", clock)
    ledger.intend(300, 300, 300)
    ledger.close(in_order=False)
    feed = Feed(source, contract, broker.bootstrap, tmp_path / "feed", clock, route="round-robin")
    with pytest.raises(LedgerError, match="were routed by key"):
        feed.run(Event())
    assert run(broker, contract, source, tmp_path / "feed", count=0).reached == 600
    assert feed.run(Event(), limits=Limits(finish_ms=10**9)).reached == 900
    routed = [(a.sequence, a.partition) for a in read_addresses(tmp_path / "feed") if a.sequence >= 600]
    assert routed == [(sequence, sequence % 3) for sequence in range(600, 900)]


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
