"""Read a whole topic with a plain client."""

import json
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from tests.patience import PATIENCE_S


class TopicRecord(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: dict[str, bytes]


def read_topic(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[TopicRecord]:
    """Return every record of a topic, in order within each partition; by default with aborted ones."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "test-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    open_partitions, records = set(partitions), []
    while open_partitions:
        for message in consumer.consume(5_000, timeout=0.2):
            if message.error():
                open_partitions.discard(message.partition())
            else:
                headers = dict(message.headers() or ())
                records.append(
                    TopicRecord(
                        message.partition(), message.offset(), message.key(), message.value() or b"", headers
                    )
                )
    consumer.close()
    return records


def parse_ids(records: list[TopicRecord]) -> list[str]:
    return [json.loads(record.value)["id"] for record in records]
