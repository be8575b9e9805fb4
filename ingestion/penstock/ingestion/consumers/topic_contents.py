"""Reads everything that a topic holds, without joining a group or committing an offset."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from penstock.core.kafka_client import PLAINTEXT_CLIENT, KafkaClientSettings, describe_kafka_error
from penstock.ingestion.errors import TopicReadError

REQUEST_TIMEOUT_S = 15.0
CONNECT_TIMEOUT_S = 2.0
_MAX_POLL_RECORDS = 1_000
_POLL_TIMEOUT_S = 0.1
"""A poll that finds fewer records than it may return takes this long, also at the end of a partition."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record of a topic, with its headers. `arrived_ms` is None if the record has no timestamp."""

    partition: int
    offset: int
    arrived_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


def read_topic(
    bootstrap: str, topic: str, client_settings: KafkaClientSettings = PLAINTEXT_CLIENT
) -> list[StoredRecord]:
    """Return the records that a topic holds now, by partition and offset; none if there is no such topic.

    Raises TopicReadError if the broker does not answer.
    """
    with open_reading_consumer(bootstrap, topic, client_settings) as consumer:
        metadata = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
        if metadata.error is not None:
            return []
        return [
            record
            for partition in sorted(metadata.partitions)
            for record in _read_all(consumer, topic, partition)
        ]


@contextmanager
def open_reading_consumer(
    bootstrap: str, topic: str, client_settings: KafkaClientSettings
) -> Iterator[Consumer]:
    """Open a consumer that reports the ends of partitions, for `read_partition`.

    Raises TopicReadError, with the topic, if the broker does not answer in the block.
    """
    _require_listener(bootstrap, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "penstock-read",  # required, but no group is joined
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
            **client_settings,
        }
    )
    try:
        yield consumer
    except KafkaException as error:
        raise TopicReadError(
            f"Cannot read {topic} at {bootstrap}: {describe_kafka_error(error)}. Check that the broker is up."
        ) from error
    finally:
        consumer.close()


def _require_listener(bootstrap: str, topic: str) -> None:
    """Raise TopicReadError if nothing listens: the client would retry for a long time."""
    problem: OSError | None = None
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except OSError as error:
            problem = error
        else:
            return
    raise TopicReadError(
        f"Cannot read {topic} at {bootstrap}: {problem}. Check that the broker is up."
    ) from problem


def _read_all(consumer: Consumer, topic: str, partition: int) -> Iterator[StoredRecord]:
    """Yield the records of a partition up to its end of now."""
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), REQUEST_TIMEOUT_S)
    yield from read_partition(consumer, topic, partition, first, end)


def read_partition(
    consumer: Consumer, topic: str, partition: int, position: int, end: int
) -> Iterator[StoredRecord]:
    """Yield the records of a partition from one offset up to, and without, another."""
    if position >= end:
        return
    consumer.assign([TopicPartition(topic, partition, position)])
    answered_at = time.monotonic()
    while position < end:
        messages = consumer.consume(_MAX_POLL_RECORDS, _POLL_TIMEOUT_S)
        if messages:
            answered_at = time.monotonic()
        elif time.monotonic() - answered_at > REQUEST_TIMEOUT_S:
            raise TopicReadError(
                f"{topic} partition {partition} did not answer for {REQUEST_TIMEOUT_S:g} s at offset {position} "
                f"of {end}. Check that the broker is up."
            )
        for message in messages:
            if (error := message.error()) is not None:
                if error.name() == "_PARTITION_EOF":
                    return
                raise KafkaException(error)
            record = _to_record(message)
            position = record.offset + 1
            if record.offset < end:
                yield record
    consumer.unassign()


def _to_record(message: Message) -> StoredRecord:
    partition, offset, (kind, arrived_ms) = message.partition(), message.offset(), message.timestamp()
    assert partition is not None
    assert offset is not None
    return StoredRecord(
        partition,
        offset,
        arrived_ms if kind else None,
        _to_bytes(message.key()),
        _to_bytes(message.value()),
        read_headers(message),
    )


def read_headers(message: Message) -> dict[str, bytes]:
    """Return the headers of a message; of several with one name, the last."""
    pairs = message.headers() or []
    assert not isinstance(pairs, dict)
    return {name: _to_bytes(value) or b"" for name, value in pairs}


def _to_bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
