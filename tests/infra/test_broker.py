"""The broker: what is decided for it in plain Python, and what the real one does."""

import os
import signal
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from penstock.core.errors import WaitTimeoutError
from penstock.infra.broker import (
    BrokerConfig,
    QuorumVoter,
    format_storage,
    new_kafka_id,
    server_properties,
    wait_for_broker,
)
from penstock.infra.errors import BrokerError, PortInUseError
from penstock.infra.local_broker import LocalBroker


def _alone(tmp_path: Path) -> BrokerConfig:
    return BrokerConfig(tmp_path, port=9092, controller_port=9093)


def test_a_node_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    properties = server_properties(_alone(tmp_path))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"


def test_a_node_alone_keeps_one_copy_and_three_nodes_keep_three(tmp_path: Path) -> None:
    voters = tuple(QuorumVoter(number, "127.0.0.1", 9000 + number, new_kafka_id()) for number in (1, 2, 3))
    alone = server_properties(_alone(tmp_path))
    three = server_properties(replace(_alone(tmp_path), voters=voters))
    assert (alone["default.replication.factor"], alone["min.insync.replicas"]) == ("1", "1")
    assert (three["default.replication.factor"], three["min.insync.replicas"]) == ("3", "2")
    assert three["controller.quorum.bootstrap.servers"].count(",") == 2


def test_no_id_could_be_taken_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([uuid.UUID(int=0xF8 << 120), uuid.UUID(int=1)])
    monkeypatch.setattr("penstock.infra.broker.uuid.uuid4", lambda: next(drawn))
    assert new_kafka_id() == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_further_properties_win_over_what_is_decided(tmp_path: Path) -> None:
    config = replace(_alone(tmp_path), properties=(("num.io.threads", "1"),))
    assert server_properties(config)["num.io.threads"] == "1"


@pytest.mark.kafka
def test_records_that_were_acknowledged_survive_a_killed_broker(own_broker: LocalBroker) -> None:
    own_broker.create_topic("readings", partitions=2)
    sent = {f"reading {number}".encode() for number in range(500)}
    _produce(own_broker, "readings", sent)
    own_broker.kill()
    own_broker.start()
    assert _consume(own_broker, "readings", partitions=2, count=len(sent)) == sent


@pytest.mark.kafka
def test_a_paused_broker_goes_on_where_it_was(broker: LocalBroker) -> None:
    broker.create_topic("paused")
    os.kill(broker.pid, signal.SIGSTOP)
    os.kill(broker.pid, signal.SIGCONT)
    _produce(broker, "paused", {b"one"})
    assert _consume(broker, "paused", partitions=1, count=1) == {b"one"}


@pytest.mark.kafka
def test_a_topic_that_nobody_created_is_not_made_by_writing_to_it(broker: LocalBroker) -> None:
    refused = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "topic.metadata.propagation.max.ms": 500})
    producer.produce("mistyped", b"x", on_delivery=lambda error, _: refused.append(error))
    producer.flush(10)
    assert [error.code() for error in refused] == [KafkaError.UNKNOWN_TOPIC_OR_PART]


@pytest.mark.kafka
def test_a_preparation_that_was_cut_off_is_begun_anew(tmp_path: Path, kafka_jar_paths: list[Path]) -> None:
    cut_off = LocalBroker.in_directory(tmp_path, kafka_jar_paths)
    cut_off.config.data_directory.mkdir(parents=True)
    (cut_off.config.data_directory / "meta.properties").write_text("version=1\ncluster.i")
    with cut_off as broker:
        broker.create_topic("works")


@pytest.mark.kafka
def test_topics_of_unknown_origin_are_refused_and_kept(tmp_path: Path, kafka_jar_paths: list[Path]) -> None:
    broker = LocalBroker.in_directory(tmp_path, kafka_jar_paths)
    (broker.config.data_directory / "sensors-0").mkdir(parents=True)
    with pytest.raises(BrokerError, match="Move the folder away"):
        broker.start()
    assert (broker.config.data_directory / "sensors-0").exists()


@pytest.mark.kafka
def test_a_taken_port_is_named_with_who_has_it_before_anything_starts(
    broker: LocalBroker, tmp_path: Path, kafka_jar_paths: list[Path]
) -> None:
    twin = LocalBroker(replace(broker.config, directory=tmp_path), kafka_jar_paths)
    with pytest.raises(PortInUseError, match=rf"Port {broker.config.port} .*process {broker.pid}: "):
        twin.start()
    assert not twin.log_file.exists()


@pytest.mark.kafka
def test_another_broker_on_the_same_port_is_not_taken_for_ours(broker: LocalBroker) -> None:
    with pytest.raises(WaitTimeoutError, match=broker.bootstrap):
        wait_for_broker(broker.bootstrap, timeout_s=1, cluster_id=new_kafka_id())


@pytest.mark.kafka
def test_a_broker_that_cannot_start_is_reported_at_once(tmp_path: Path, kafka_jar_paths: list[Path]) -> None:
    broker = LocalBroker.in_directory(tmp_path, kafka_jar_paths)
    broken = replace(broker.config, properties=(("num.io.threads", "many"),))
    format_storage(broker.config, kafka_jar_paths)
    with pytest.raises(BrokerError, match="exited during startup"):
        LocalBroker(broken, kafka_jar_paths).start()
    assert "num.io.threads" in broker.read_log_tail()


def _produce(broker: LocalBroker, topic: str, values: set[bytes]) -> None:
    refused = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and refused.append(error))
    assert producer.flush(30) == 0
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
