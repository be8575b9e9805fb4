"""Clients that are not ours read what we write, and write what we read: kcat, and Kafka's own console tools."""

import shutil
import subprocess
import threading
import time
from itertools import islice
from pathlib import Path

import pytest
from tests.ingestion.kafka_tools import RunKafkaTool, make_kafka_tool
from tests.ingestion.topic_reading import read_topic
from tests.ingestion.topics_for_tests import sensors_contract

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.consumers import ConsumerRecord, GroupOffsetCommitter, PlainConsumer
from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.errors import ConsumerGroupError
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.generators import SensorGenerator, make_even_send_times
from penstock.ingestion.producer.partitioner import KeyPartitioner
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
SENSORS_CODEC = json_codec(load_contract("sensors"))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def kcat() -> str:
    found = shutil.which("kcat")
    if found is None:
        pytest.skip("kcat is not installed (Debian package kcat)")
    return found


@pytest.fixture
def console(jar_directory: Path) -> RunKafkaTool:
    return make_kafka_tool(jar_directory)


def feed_topic(broker: LocalBroker, topic: str, ledger: Path, number: int) -> list[bytes]:
    contract = sensors_contract(topic)
    ensure_topics(broker.bootstrap, [contract])
    source = GeneratorSource(SensorGenerator(5), contract, now_ms)
    summary = Feed(source, contract, broker.bootstrap, ledger, now_ms).run(
        threading.Event(), limits=FeedLimits(count=number, finish_ms=30_000)
    )
    assert summary.acknowledged_records == number
    return sorted(record.value for record in read_topic(broker.bootstrap, topic))


def consume_topic(broker: LocalBroker, topic: str, number: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    PlainConsumer(broker.bootstrap, topic, f"read-{topic}", found.extend).run(threading.Event(), number)
    return found


def test_kcat_reads_what_the_feed_writes(broker: LocalBroker, kcat: str, tmp_path: Path):
    values = feed_topic(broker, "for-kcat", tmp_path / "feed", 3_000)
    command = [kcat, "-C", "-b", broker.bootstrap, "-t", "for-kcat", "-e", "-q", "-o", "beginning"]
    read = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout
    assert sorted(read.splitlines()) == values


def test_what_kcat_writes_is_read_and_its_keys_lie_where_ours_would(broker: LocalBroker, kcat: str):
    ensure_topics(broker.bootstrap, [sensors_contract("from-kcat")])
    records = list(
        islice(SensorGenerator(6).generate_records(0, make_even_send_times(1_700_000_000_000, 10)), 500)
    )
    lines = b"".join(
        record.device.encode() + b"|" + SENSORS_CODEC.encode(record) + b"\n" for record in records
    )
    options = ["-X", "partitioner=murmur2_random", "-K", "|"]
    command = [kcat, "-P", "-b", broker.bootstrap, "-t", "from-kcat", *options]
    subprocess.run(command, input=lines, timeout=60, check=True)
    found = consume_topic(broker, "from-kcat", 500)
    assert sorted(found_one.value for found_one in found) == sorted(map(SENSORS_CODEC.encode, records))
    route = KeyPartitioner()
    assert all(route([one.key], 0, 3) == [one.partition] for one in found)


def test_kafkas_console_consumer_reads_what_the_feed_writes(
    broker: LocalBroker, console: RunKafkaTool, tmp_path: Path
):
    values = feed_topic(broker, "for-console", tmp_path / "feed", 1_000)
    options = ["--bootstrap-server", broker.bootstrap, "--topic", "for-console", "--from-beginning"]
    read = console("consumer.ConsoleConsumer", *options, "--max-messages", "1000")
    assert sorted(read.splitlines()) == values


def test_what_kafkas_console_producer_writes_is_read_and_its_keys_lie_where_ours_would(
    broker: LocalBroker, console: RunKafkaTool
):
    ensure_topics(broker.bootstrap, [sensors_contract("from-console")])
    records = list(
        islice(SensorGenerator(6).generate_records(0, make_even_send_times(1_700_000_000_000, 10)), 300)
    )
    lines = b"".join(
        record.device.encode() + b"|" + SENSORS_CODEC.encode(record) + b"\n" for record in records
    )
    options = ["--bootstrap-server", broker.bootstrap, "--topic", "from-console"]
    keyed = ["--property", "parse.key=true", "--property", "key.separator=|"]
    console("ConsoleProducer", *options, *keyed, given=lines)
    found = consume_topic(broker, "from-console", 300)
    assert sorted(one.value for one in found) == sorted(map(SENSORS_CODEC.encode, records))
    route = KeyPartitioner()
    assert all(route([one.key], 0, 3) == [one.partition] for one in found)


def test_offsets_that_are_reported_quickly_arrive_and_the_newest_stand(broker: LocalBroker, tmp_path: Path):
    feed_topic(broker, "lagging", tmp_path / "feed", 100)
    groups = GroupOffsetCommitter(broker.bootstrap)
    for offset in range(50):
        groups.report("quick", {("lagging", offset % 2): offset})
    assert groups.wait_until_committed(60)
    assert groups.read_offsets("quick") == {("lagging", 0): 48, ("lagging", 1): 49}


def test_a_broker_that_is_killed_costs_reports_and_not_the_process(own_broker: LocalBroker, tmp_path: Path):
    feed_topic(own_broker, "cut-off", tmp_path / "feed", 10)
    groups = GroupOffsetCommitter(own_broker.bootstrap, timeout_s=2.0)
    groups.report("quick", {("cut-off", 0): 1})
    assert groups.wait_until_committed(60)
    own_broker.kill()
    for offset in range(2, 5):
        groups.report("quick", {("cut-off", 0): offset})
        groups.wait_until_committed(1)
    own_broker.start()

    def kept() -> bool:
        groups.report("quick", {("cut-off", 0): 7})
        return groups.wait_until_committed(10) and groups.read_offsets("quick") == {("cut-off", 0): 7}

    wait_until(kept, 60, "the offset to be kept again")
    groups.close(10)


def test_a_commit_for_a_group_with_members_is_reported_as_refused(broker: LocalBroker, tmp_path: Path):
    feed_topic(broker, "taken-group", tmp_path / "feed", 10)
    refusals: list[ConsumerGroupError] = []
    groups = GroupOffsetCommitter(broker.bootstrap, on_refusal=refusals.append)
    stop = threading.Event()

    def report_from_inside(_records: object) -> None:
        groups.report("inside", {("taken-group", 0): 1})
        assert groups.wait_until_committed(60)
        stop.set()

    PlainConsumer(broker.bootstrap, "taken-group", "inside", report_from_inside).run(stop)
    assert "no consumer uses this group" in str(refusals[0])


def test_partitions_move_when_members_join_and_leave_and_every_record_is_handled(
    broker: LocalBroker, tmp_path: Path
):
    feed_topic(broker, "grouped", tmp_path / "feed", 2_000)
    handled: list[tuple[int, int]] = []
    held: dict[str, tuple[int, ...]] = {}
    stops = {name: threading.Event() for name in ("one", "two")}

    def member(name: str) -> threading.Thread:
        consumer = PlainConsumer(
            broker.bootstrap,
            "grouped",
            "members",
            lambda records: handled.extend((one.partition, one.offset) for one in records),
            on_assignment=lambda assignment: held.__setitem__(name, assignment.partitions),
            client_settings={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500},
        )
        thread = threading.Thread(target=consumer.run, args=(stops[name],))
        thread.start()
        return thread

    first = member("one")
    wait_until(lambda: held.get("one") == (0, 1, 2), 60, "one member to hold all")
    second = member("two")
    wait_until(
        lambda: held.get("two", ()) != () and sorted(held["one"] + held["two"]) == [0, 1, 2], 60, "both"
    )
    stops["one"].set()
    first.join(30)
    wait_until(lambda: held["two"] == (0, 1, 2), 60, "the other to hold all")
    wait_until(lambda: len(set(handled)) == 2_000, 60, "every record to be handled")
    stops["two"].set()
    second.join(30)
