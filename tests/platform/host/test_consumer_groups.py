"""The lag of a stream in Kafka's command-line tools."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from tests.ingestion.kafka_tools import make_kafka_tool

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord
from penstock.infra.local_broker import LocalBroker
from penstock.platform.control import open_control_store
from penstock.platform.host.consumer_groups import StreamConsumerGroups, consumer_group_id
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.host.observed_control import ObservedControl

pytestmark = pytest.mark.kafka


def build_batch(number: int, ends: dict[int, int]) -> BatchRecord:
    accounts = [PartitionAccount("read", p, 0, end, end, end, 0, 0, 0) for p, end in ends.items()]
    return BatchRecord("sensor_minute", number, 1, "data", 5_000, None, tuple(accounts))


def test_committed_offsets_show_the_lag_of_a_stream(
    broker: LocalBroker, tmp_path: Path, jar_directory: Path
) -> None:
    broker.create_topic("read", partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(50):
        producer.produce("read", b"%d" % number, partition=number % 2)
    producer.flush()
    store = open_control_store(f"sqlite:///{tmp_path}/control.db")
    groups = StreamConsumerGroups(broker.bootstrap, {})
    control = ObservedControl(store, HostMetrics(CollectorRegistry()), groups.report_batch)
    for number, ends in enumerate(({0: 3, 1: 4}, {0: 10, 1: 20}, {})):
        control.record_batch(build_batch(number, ends))
    groups.close()
    store.close()
    options = [
        "--bootstrap-server",
        broker.bootstrap,
        "--describe",
        "--group",
        consumer_group_id("sensor_minute"),
    ]
    output = make_kafka_tool(jar_directory)("consumer.group.ConsumerGroupCommand", *options).decode()
    rows = [line.split() for line in output.splitlines() if "read" in line.split()]
    assert sorted(row[1:6] for row in rows) == [
        ["read", "0", "10", "25", "15"],
        ["read", "1", "20", "25", "5"],
    ]
