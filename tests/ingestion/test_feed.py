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
from confluent_kafka.admin import AdminClient
from tests.ingestion.topic_reading import parse_ids, read_topic
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, TopicLayout, load_contract
from penstock.ingestion.errors import DeliveryError, LedgerError, TopicAdminError
from penstock.ingestion.feed import Feed, FeedLimits, FeedSummary
from penstock.ingestion.generators import SensorGenerator, make_even_send_times
from penstock.ingestion.ledger import DeliveryLedger, read_addresses, read_ledger_state
from penstock.ingestion.producer import InFlightWindow, SourceBatch, create_record_format
from penstock.ingestion.registry import FileRegistry
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.sources.source import ReplayableSource
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
VALID_RECORD = b'{"id":"%d","device":"d%d","site":"s","at":1700000000000,"temperature":21.5}'
INVALID_RECORDS = {
    b'{"id":"x","device"': "malformed",
    b'{"id":"x","device":"d","site":"s","at":"noon"}': "wrong_type:at",
    b'{"id":"x","device":"d","site":"s"}': "missing_field:at",
    b'{"id":"\xff","device":"d","site":"s","at":1}': "invalid_utf8:id",
    b'{"id":"' + b"x" * 10_000_000 + b'"}': "too_large",
    b"[" * 100_000: "malformed",
    b'{"id":"x","device":"d","site":"s","at":1,"humidity":' + b"[" * 100_000: "nested_too_deeply",
    b"": "malformed",
}


class ListSource(ReplayableSource):
    """A source of the values of a list."""

    def __init__(self, values: list[bytes], size: int = 700, encoded: bool = False) -> None:
        self.description = "given values"
        self._values = values
        self._size = size
        self._encoded = encoded

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        for first in range(position or 0, len(self._values), self._size):
            yield SourceBatch(self._values[first : first + self._size], first, is_encoded=self._encoded)


TICKS = itertools.count(1_700_000_000_000)


def next_tick() -> int:
    return next(TICKS)


def create_topic(broker: LocalBroker, name: str) -> Contract:
    contract = dataclasses.replace(load_contract("sensors"), topic=name)
    ensure_topics(broker.bootstrap, [contract])
    return contract


def run_feed(
    broker: LocalBroker, contract: Contract, source: Any, ledger: Path, **options: Any
) -> FeedSummary:
    limits = FeedLimits(**{"finish_ms": 10**9, **options})
    return Feed(source, contract, broker.bootstrap, ledger, next_tick).run(Event(), limits=limits)


def test_invalid_records_become_dead_letters_with_reason_and_bytes(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "broken")
    values = [VALID_RECORD % (n, n % 5) for n in range(5_000)]
    for number, value in enumerate(INVALID_RECORDS):
        values.insert(number * 600, value)
    summary = run_feed(broker, contract, ListSource(values), tmp_path / "feed")
    assert (summary.acknowledged_records, summary.dead_letters) == (len(values), len(INVALID_RECORDS))
    delivered, dead = (
        read_topic(broker.bootstrap, "broken"),
        read_topic(broker.bootstrap, "broken.dead-letters"),
    )
    assert {record.value: record.headers["penstock-reason"].decode() for record in dead} == INVALID_RECORDS
    assert sorted(record.value for record in delivered) == sorted(
        v for v in values if v not in INVALID_RECORDS
    )
    sequences = {(a.topic, a.partition, a.offset): a.sequence for a in read_addresses(tmp_path / "feed")}
    for record in dead:
        assert values[sequences["broken.dead-letters", record.partition, record.offset]] == record.value
        assert record.headers["penstock-producer"] == b"feed"


def test_invalid_avro_becomes_dead_letters_with_its_bytes(broker: LocalBroker, tmp_path: Path):
    contract = dataclasses.replace(create_topic(broker, "broken-avro"), encoding="avro")
    registry = FileRegistry(tmp_path / "registry")
    record_format = create_record_format(contract, registry)
    encoded = [
        record_format.encode(record)
        for record in islice(SensorGenerator(1).generate_records(0, make_even_send_times(0, 10)), 2_000)
    ]
    invalid = {
        encoded[0][:-1]: "malformed",
        b"\0\0\0\0\7" + encoded[0][5:]: "wrong_schema",
        b"\1" + encoded[0][1:]: "wrong_schema",
        encoded[0] + b"x" * 10_000_000: "too_large",
        encoded[0].replace(b"device", b"\xff\xfevice"): "invalid_utf8:device",
    }
    values = list(encoded)
    for number, value in enumerate(invalid):
        values.insert(number * 300, value)
    source = ListSource(values, encoded=True)
    feed = Feed(source, contract, broker.bootstrap, tmp_path / "feed", next_tick, registry)
    summary = feed.run(Event(), limits=FeedLimits(finish_ms=10**9))
    assert (summary.acknowledged_records, summary.dead_letters) == (len(values), len(invalid))
    dead = read_topic(broker.bootstrap, "broken-avro.dead-letters")
    assert {record.value: record.headers["penstock-reason"].decode() for record in dead} == invalid
    assert sorted(record.value for record in read_topic(broker.bootstrap, "broken-avro")) == sorted(encoded)


def test_a_record_that_the_broker_refuses_stops_the_feed_at_its_sequence(broker: LocalBroker, tmp_path: Path):
    small = dataclasses.replace(
        load_contract("sensors"),
        topic="small",
        layout=TopicLayout(settings=(("max.message.bytes", "200000"),)),
    )
    ensure_topics(broker.bootstrap, [small])
    noise = random.Random(1).randbytes(200_000).hex().encode()
    values = [VALID_RECORD % (n, n % 5) for n in range(2_000)]
    values[1_200] = b'{"id":"1200","device":"d","site":"%s","at":1}' % noise
    source = ListSource(values, size=100)
    with pytest.raises(DeliveryError, match=r"refused a record: .* Start again to resume there") as stopped:
        run_feed(broker, small, source, tmp_path / "feed")
    assert (
        stopped.value.acknowledged_until == read_ledger_state(tmp_path / "feed").acknowledged_until <= 1_200
    )
    larger = dataclasses.replace(small, layout=TopicLayout(settings=(("max.message.bytes", "2000000"),)))
    ensure_topics(broker.bootstrap, [larger])
    assert run_feed(broker, larger, source, tmp_path / "feed").acknowledged_until == 2_000
    assert sorted(map(int, parse_ids(read_topic(broker.bootstrap, "small")))) == list(range(2_000))


def test_a_topic_accepts_the_largest_record_of_its_contract(broker: LocalBroker, tmp_path: Path):
    contract = dataclasses.replace(load_contract("sensors"), topic="heavy", max_bytes=3_000_000)
    ensure_topics(broker.bootstrap, [contract])
    rng = random.Random(2)

    def record(device_bytes: int, site_bytes: int) -> bytes:
        device, site = (rng.randbytes(size // 2).hex() for size in (device_bytes, site_bytes))
        return b'{"id":"x","device":"%s","site":"%s","at":1}' % (device.encode(), site.encode())

    rest = len(record(0, 0))
    fits = [record(1_400_000, 200_000 - rest), record(0, 3_000_000 - rest)]
    # One byte too large with its key, too large by its key alone, and too large even for the dead letters.
    refused = [record(1_400_000, 200_002 - rest), record(1_600_000, 0), b"x" * 40_000_000]
    values = [*fits, *refused, VALID_RECORD % (1, 1)]
    summary = run_feed(broker, contract, ListSource(values), tmp_path / "feed")
    assert (summary.acknowledged_records, summary.dead_letters) == (6, 3)
    assert {record.value for record in read_topic(broker.bootstrap, "heavy")} == {*fits, values[-1]}
    first, second, truncated = read_topic(broker.bootstrap, "heavy.dead-letters")
    assert [first.value, second.value] == refused[:2]
    assert {letter.headers["penstock-reason"] for letter in (first, second, truncated)} == {b"too_large"}
    assert "penstock-original-bytes" not in first.headers
    assert truncated.headers["penstock-original-bytes"] == b"40000000"
    assert len(truncated.value) > 33_000_000
    assert truncated.value == b"x" * len(truncated.value)


def test_a_partitioner_cannot_change_while_intents_are_pending(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "routed")
    source = ListSource([VALID_RECORD % (n, n % 5) for n in range(900)], size=300)
    run_feed(broker, contract, source, tmp_path / "feed", count=300)
    ledger = DeliveryLedger(tmp_path / "feed", next_tick)
    ledger.record_intent(300, 300, 300)
    ledger.close(clean=False)
    feed = Feed(
        source, contract, broker.bootstrap, tmp_path / "feed", next_tick, partitioner_name="round-robin"
    )
    with pytest.raises(LedgerError, match="in doubt with the partitioner 'key'"):
        feed.run(Event())
    assert run_feed(broker, contract, source, tmp_path / "feed", count=0).acknowledged_until == 600
    assert feed.run(Event(), limits=FeedLimits(finish_ms=10**9)).acknowledged_until == 900
    routed = [(a.sequence, a.partition) for a in read_addresses(tmp_path / "feed") if a.sequence >= 600]
    assert routed == [(sequence, sequence % 3) for sequence in range(600, 900)]


def test_a_second_run_continues_where_the_first_stopped(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "continued")
    source = ListSource([VALID_RECORD % (n, n % 5) for n in range(3_000)])
    assert run_feed(broker, contract, source, tmp_path / "feed", count=1_234).acknowledged_until == 1_234
    assert run_feed(broker, contract, source, tmp_path / "feed").acknowledged_until == 3_000
    assert run_feed(broker, contract, source, tmp_path / "feed").acknowledged_records == 0
    assert sorted(map(int, parse_ids(read_topic(broker.bootstrap, "continued")))) == list(range(3_000))


def test_two_producers_of_one_topic_record_their_own_addresses(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "shared")
    feeds = [
        Feed(
            GeneratorSource(SensorGenerator(seed), contract, next_tick),
            contract,
            broker.bootstrap,
            tmp_path / str(seed),
            next_tick,
            in_flight_window=InFlightWindow(max_records=2_000, max_chunk_records=300),
        )
        for seed in (1, 2)
    ]
    threads = [
        threading.Thread(
            target=feed.run, args=(Event(),), kwargs={"limits": FeedLimits(count=20_000, finish_ms=10**9)}
        )
        for feed in feeds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = {(r.partition, r.offset): json.loads(r.value)["id"] for r in read_topic(broker.bootstrap, "shared")}
    for seed in (1, 2):
        for address in read_addresses(tmp_path / str(seed)):
            assert ids.pop((address.partition, address.offset)) == f"{seed}-{address.sequence}"
    assert ids == {}


def test_a_ledger_has_one_writer(tmp_path: Path):
    ledger = DeliveryLedger(tmp_path / "feed", next_tick)
    with pytest.raises(LedgerError, match="Another process"):
        DeliveryLedger(tmp_path / "feed", next_tick)
    ledger.close(clean=True)
    DeliveryLedger(tmp_path / "feed", next_tick).close(clean=True)


def test_a_ledger_of_another_source_is_refused(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "named")
    run_feed(broker, contract, ListSource([VALID_RECORD % (1, 1)]), tmp_path / "feed")
    with pytest.raises(LedgerError, match="given values"):
        run_feed(
            broker,
            contract,
            GeneratorSource(SensorGenerator(1), contract, next_tick),
            tmp_path / "feed",
            count=1,
        )


def test_a_missing_topic_is_reported_before_anything_is_sent(broker: LocalBroker, tmp_path: Path):
    contract = dataclasses.replace(load_contract("sensors"), topic="nowhere")
    with pytest.raises(TopicAdminError, match="penstock topics apply"):
        run_feed(broker, contract, ListSource([VALID_RECORD % (1, 1)]), tmp_path / "feed")
    assert read_ledger_state(tmp_path / "feed").pending_intents == []


def recreate_topic(broker: LocalBroker, contract: Contract) -> None:
    """Delete a topic and create it again; the broker refuses that until the deletion is done."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([contract.topic])[contract.topic].result(PATIENCE_S)
    wait_until(
        lambda: contract.topic not in admin.list_topics(timeout=PATIENCE_S).topics, PATIENCE_S, "the deletion"
    )
    ensure_topics(broker.bootstrap, [contract])


def test_a_topic_that_was_created_again_gets_every_record_again(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "again")
    values = [VALID_RECORD % (n, n % 5) for n in range(2_000)]
    assert (
        run_feed(broker, contract, ListSource(values), tmp_path / "feed", until=1_000).acknowledged_records
        == 1_000
    )
    recreate_topic(broker, contract)
    assert run_feed(broker, contract, ListSource(values), tmp_path / "feed").acknowledged_records == 2_000
    assert sorted(record.value for record in read_topic(broker.bootstrap, "again")) == sorted(values)
    (aside,) = tmp_path.glob("feed~*")
    assert read_ledger_state(aside).acknowledged_until == 1_000


def test_a_feed_that_cannot_start_over_refuses_another_topic(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "refused")
    values = [VALID_RECORD % (n, n % 5) for n in range(100)]
    run_feed(broker, contract, ListSource(values), tmp_path / "feed", until=50)
    recreate_topic(broker, contract)
    feed = Feed(
        ListSource(values), contract, broker.bootstrap, tmp_path / "feed", next_tick, on_new_topic="refuse"
    )
    with pytest.raises(LedgerError, match="it was created again, or it is in another cluster"):
        feed.run(Event())
    assert read_topic(broker.bootstrap, "refused") == []


def test_a_producer_resumes_in_each_cluster_where_it_stopped(
    broker: LocalBroker, own_broker: LocalBroker, tmp_path: Path
):
    values = [VALID_RECORD % (n, n % 5) for n in range(1_000)]
    for cluster, until in ((broker, 400), (own_broker, 300), (broker, 1_000), (own_broker, 1_000)):
        run_feed(cluster, create_topic(cluster, "both"), ListSource(values), tmp_path / "feed", until=until)
    for cluster in (broker, own_broker):
        assert sorted(record.value for record in read_topic(cluster.bootstrap, "both")) == sorted(values)
