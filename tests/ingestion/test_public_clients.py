"""Records exchanged with kcat and Kafka's console tools."""

import shutil
import subprocess
import threading
from itertools import islice
from pathlib import Path

import pytest
from tests.ingestion.kafka_tools import RunKafkaTool, make_kafka_tool
from tests.ingestion.sensor_feeds import feed_topic
from tests.ingestion.topic_contracts import sensors_contract

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.consumers import ConsumerRecord, PlainConsumer
from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.generators import SensorGenerator, make_even_send_times
from penstock.ingestion.producer.partitioner import KeyPartitioner
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka


SENSORS_CODEC = json_codec(load_contract("sensors"))


@pytest.fixture
def kcat() -> str:
    program = shutil.which("kcat")
    if program is None:
        pytest.skip("kcat is not installed (Debian package kcat)")
    return program


@pytest.fixture
def kafka_tool(jar_directory: Path) -> RunKafkaTool:
    return make_kafka_tool(jar_directory)


def consume_topic(broker: LocalBroker, topic: str, number: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    PlainConsumer(broker.bootstrap, topic, f"read-{topic}", records.extend).run(threading.Event(), number)
    return records


def test_kcat_reads_what_the_feed_writes(broker: LocalBroker, kcat: str, tmp_path: Path):
    values = feed_topic(broker, "for-kcat", tmp_path / "feed", 3_000)
    command = [kcat, "-C", "-b", broker.bootstrap, "-t", "for-kcat", "-e", "-q", "-o", "beginning"]
    output = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout
    assert sorted(output.splitlines()) == values


def test_records_of_kcat_are_read_with_the_same_partitions(broker: LocalBroker, kcat: str):
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
    consumed = consume_topic(broker, "from-kcat", 500)
    assert sorted(record.value for record in consumed) == sorted(map(SENSORS_CODEC.encode, records))
    route = KeyPartitioner()
    assert all(route([record.key], 0, 3) == [record.partition] for record in consumed)


def test_the_console_consumer_reads_what_the_feed_writes(
    broker: LocalBroker, kafka_tool: RunKafkaTool, tmp_path: Path
):
    values = feed_topic(broker, "for-console", tmp_path / "feed", 1_000)
    options = ["--bootstrap-server", broker.bootstrap, "--topic", "for-console", "--from-beginning"]
    output = kafka_tool("consumer.ConsoleConsumer", *options, "--max-messages", "1000")
    assert sorted(output.splitlines()) == values


def test_records_of_the_console_producer_are_read_with_the_same_partitions(
    broker: LocalBroker, kafka_tool: RunKafkaTool
):
    ensure_topics(broker.bootstrap, [sensors_contract("from-console")])
    records = list(
        islice(SensorGenerator(6).generate_records(0, make_even_send_times(1_700_000_000_000, 10)), 300)
    )
    lines = b"".join(
        record.device.encode() + b"|" + SENSORS_CODEC.encode(record) + b"\n" for record in records
    )
    options = ["--bootstrap-server", broker.bootstrap, "--topic", "from-console"]
    key_options = ["--property", "parse.key=true", "--property", "key.separator=|"]
    kafka_tool("ConsoleProducer", *options, *key_options, stdin=lines)
    consumed = consume_topic(broker, "from-console", 300)
    assert sorted(record.value for record in consumed) == sorted(map(SENSORS_CODEC.encode, records))
    route = KeyPartitioner()
    assert all(route([record.key], 0, 3) == [record.partition] for record in consumed)
