"""A real broker that is killed, paused, or started on wrong data."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.patience import PATIENCE_S

from penstock.core.errors import WaitTimeoutError
from penstock.infra.broker import (
    format_storage,
    new_kafka_id,
    wait_for_broker,
)
from penstock.infra.errors import BrokerError, PortInUseError
from penstock.infra.local_broker import LocalBroker


@pytest.mark.kafka
def test_acknowledged_records_survive_a_killed_broker(own_broker: LocalBroker) -> None:
    own_broker.create_topic("readings", partitions=2)
    sent = {f"reading {number}".encode() for number in range(500)}
    _produce(own_broker, "readings", sent)
    own_broker.kill()
    own_broker.start()
    assert _consume(own_broker, "readings", partitions=2, count=len(sent)) == sent


@pytest.mark.kafka
def test_a_paused_broker_resumes(broker: LocalBroker) -> None:
    broker.create_topic("paused")
    os.kill(broker.pid, signal.SIGSTOP)
    os.kill(broker.pid, signal.SIGCONT)
    _produce(broker, "paused", {b"one"})
    assert _consume(broker, "paused", partitions=1, count=1) == {b"one"}


@pytest.mark.kafka
def test_writing_does_not_create_a_topic(broker: LocalBroker) -> None:
    refused = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "topic.metadata.propagation.max.ms": 500})
    producer.produce("mistyped", b"x", on_delivery=lambda error, _: refused.append(error))
    producer.flush(PATIENCE_S)
    assert [error.code() for error in refused] == [KafkaError.UNKNOWN_TOPIC_OR_PART]


@pytest.mark.kafka
def test_an_interrupted_format_is_repeated(tmp_path: Path, kafka_jar_paths: list[Path]) -> None:
    interrupted = LocalBroker.in_directory(tmp_path, kafka_jar_paths)
    interrupted.config.data_directory.mkdir(parents=True)
    (interrupted.config.data_directory / "meta.properties").write_text("version=1\ncluster.i")
    with interrupted as broker:
        broker.create_topic("works")


@pytest.mark.kafka
def test_unknown_data_is_refused_and_preserved(tmp_path: Path, kafka_jar_paths: list[Path]) -> None:
    broker = LocalBroker.in_directory(tmp_path, kafka_jar_paths)
    (broker.config.data_directory / "sensors-0").mkdir(parents=True)
    with pytest.raises(BrokerError, match="Move the folder away"):
        broker.start()
    assert (broker.config.data_directory / "sensors-0").exists()


@pytest.mark.kafka
def test_a_port_in_use_is_reported_with_its_process(
    broker: LocalBroker, tmp_path: Path, kafka_jar_paths: list[Path]
) -> None:
    second = LocalBroker(replace(broker.config, directory=tmp_path), kafka_jar_paths)
    with pytest.raises(PortInUseError, match=rf"Port {broker.config.port} .*process {broker.pid}: "):
        second.start()
    assert not second.log_file.exists()


@pytest.mark.kafka
def test_a_broker_with_another_cluster_id_is_not_accepted(broker: LocalBroker) -> None:
    with pytest.raises(WaitTimeoutError, match=broker.bootstrap):
        wait_for_broker(broker.bootstrap, timeout_s=1, cluster_id=new_kafka_id())


@pytest.mark.kafka
def test_a_broker_that_exits_on_startup_is_reported_immediately(
    tmp_path: Path, kafka_jar_paths: list[Path]
) -> None:
    broker = LocalBroker.in_directory(tmp_path, kafka_jar_paths)
    invalid = replace(broker.config, properties=(("num.io.threads", "many"),))
    format_storage(broker.config, kafka_jar_paths)
    with pytest.raises(BrokerError, match="exited during startup"):
        LocalBroker(invalid, kafka_jar_paths).start()
    assert "num.io.threads" in broker.read_log_tail()


def _produce(broker: LocalBroker, topic: str, values: set[bytes]) -> None:
    refused = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and refused.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert refused == []


def _consume(broker: LocalBroker, topic: str, partitions: int, count: int) -> set[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "test", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    try:
        messages = consumer.consume(count, timeout=30)
        return {message.value() for message in messages}
    finally:
        consumer.close()
