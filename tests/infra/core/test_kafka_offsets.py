"""Offsets of partitions, read from a running broker and from one that is not available."""

import socket
from contextlib import closing

import pytest
from confluent_kafka import KafkaException, Producer

from penstock.core.kafka_offsets import (
    fetch_end_offsets,
    fetch_first_offsets,
    fetch_offsets_at,
    open_offset_consumer,
)
from penstock.infra.local_broker import LocalBroker

TOPIC = "offsets"
PARTITIONS = [(TOPIC, 0), (TOPIC, 1)]
START_MS = 1_767_225_600_000


@pytest.mark.kafka
def test_the_broker_reports_first_and_end_offsets_and_those_at_a_time(broker: LocalBroker) -> None:
    broker.create_topic(TOPIC, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(7):
        producer.produce(TOPIC, b"x", partition=min(number, 1), timestamp=START_MS + number)
    producer.flush()
    with closing(open_offset_consumer(broker.bootstrap, {})) as consumer:
        assert fetch_first_offsets(consumer, PARTITIONS, 10) == {(TOPIC, 0): 0, (TOPIC, 1): 0}
        assert fetch_end_offsets(consumer, PARTITIONS, 10) == {(TOPIC, 0): 1, (TOPIC, 1): 6}
        assert fetch_offsets_at(consumer, PARTITIONS, START_MS + 3, 10) == {(TOPIC, 1): 2}
        assert fetch_end_offsets(consumer, [], 10) == {}
        unknown = [*PARTITIONS, (TOPIC, 9)]
        assert fetch_end_offsets(consumer, unknown, 10, skip_errors=True).keys() == set(PARTITIONS)
        with pytest.raises(KafkaException, match="Unknown partition"):
            fetch_end_offsets(consumer, unknown, 10)


@pytest.mark.kafka
def test_the_end_of_committed_records_is_before_an_open_transaction(broker: LocalBroker) -> None:
    broker.create_topic("transactions")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transactions", b"x", partition=0)
    producer.flush()
    ends = []
    for committed_only in (True, False):
        with closing(open_offset_consumer(broker.bootstrap, {}, committed_only=committed_only)) as consumer:
            ends.append(fetch_end_offsets(consumer, [("transactions", 0)], 10)["transactions", 0])
    producer.abort_transaction(30)
    assert ends == [0, 1]


def test_an_unavailable_broker_raises_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with closing(open_offset_consumer(address, {})) as consumer, pytest.raises(KafkaException):
            fetch_end_offsets(consumer, PARTITIONS, 1)
