"""Kafka producers and readers for ingestion, and requests for partitions and offsets."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.core.kafka_client import KafkaClientSettings, create_admin_client, describe_kafka_error
from penstock.core.kafka_topics import TopicIds, fetch_cluster_topic_ids
from penstock.ingestion.errors import TopicAdminError

TargetPartitions = list[tuple[str, int]]
# Called repeatedly while something waits for the broker; it can end the wait by raising an exception.
WaitCallback = Callable[[], None]
RequestResult = TypeVar("RequestResult")
_BROKER_TIMEOUT_S = 30.0
_RETRY_PAUSE_S = 0.2
_REQUEST_TIMEOUT_S = 3.0
_TRANSIENT_ERRORS = {
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_DESTROY_BROKER",
    "_TRANSPORT",
    # The answer about a new topic comes from a broker that has not learned of it yet.
    "_UNKNOWN_PARTITION",
    "FENCED_LEADER_EPOCH",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "UNKNOWN_LEADER_EPOCH",
}


def ignore_wait() -> None:
    """Do nothing."""


def create_producer(
    bootstrap: str, on_error: Callable[[KafkaError], None], client_settings: KafkaClientSettings
) -> Producer:
    """Return an idempotent producer that waits for the broker without a timeout.

    A refused record stops the producer with a fatal error, so that records are never delivered with a gap.
    """
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            "acks": "all",
            "message.timeout.ms": 0,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": on_error,
            "log_level": 2,
            **client_settings,
        },
        logger=logging.getLogger("penstock.ingestion.kafka"),
    )


def create_reader(bootstrap: str, client_settings: KafkaClientSettings) -> Consumer:
    """Return a consumer that joins no group and commits nothing."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "penstock-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "fetch.message.max.bytes": 4_194_304,
            "log_level": 2,
            **client_settings,
        },
        logger=logging.getLogger("penstock.ingestion.kafka"),
    )


def list_targets(
    bootstrap: str, reader: Consumer, topic: str, dead_letter_topic: str, on_wait: WaitCallback = ignore_wait
) -> TargetPartitions:
    """Return the partitions of a topic, followed by the partition of its dead-letter topic."""
    partition_count = require_topic(bootstrap, reader, topic, on_wait)
    require_topic(bootstrap, reader, dead_letter_topic, on_wait)
    return [*((topic, partition) for partition in range(partition_count)), (dead_letter_topic, 0)]


def require_topic(bootstrap: str, reader: Consumer, topic: str, on_wait: WaitCallback = ignore_wait) -> int:
    """Return the number of partitions of a topic; raise TopicAdminError if it does not exist."""
    partition_count = _count_partitions(bootstrap, reader, topic, on_wait)
    if not partition_count:
        raise TopicAdminError(f"No topic {topic} at {bootstrap}. `penstock topics apply` creates it.")
    return partition_count


def read_topic_ids(
    bootstrap: str,
    client_settings: KafkaClientSettings,
    topics: Sequence[str],
    on_wait: WaitCallback = ignore_wait,
) -> TopicIds:
    """Return the ids of existing topics and of their cluster; wait for the broker, up to the broker timeout."""
    admin = create_admin_client(bootstrap, client_settings)
    deadline = time.monotonic() + _BROKER_TIMEOUT_S
    return _retry_transient(
        lambda seconds: fetch_cluster_topic_ids(admin, topics, seconds), deadline, on_wait
    )


def read_offset_ranges(
    reader: Consumer, targets: Sequence[tuple[str, int]], on_wait: WaitCallback = ignore_wait
) -> list[tuple[int, int]]:
    """Return the first and the next offset of each target.

    If a broker is unavailable, this waits until another one leads its partitions, up to the broker timeout.
    """
    deadline = time.monotonic() + _BROKER_TIMEOUT_S
    return [_read_offset_range(reader, TopicPartition(*target), deadline, on_wait) for target in targets]


def _read_offset_range(
    reader: Consumer, partition: TopicPartition, deadline: float, on_wait: WaitCallback
) -> tuple[int, int]:
    def refresh_leader() -> None:
        on_wait()
        reader.poll(_RETRY_PAUSE_S)
        # A failed refresh is not an error: the next request tries again.
        with suppress(KafkaException):
            reader.list_topics(partition.topic, timeout=_REQUEST_TIMEOUT_S)

    return _retry_transient(
        lambda seconds: reader.get_watermark_offsets(partition, timeout=seconds), deadline, refresh_leader
    )


def _retry_transient(
    request: Callable[[float], RequestResult], deadline: float, on_wait: WaitCallback
) -> RequestResult:
    """Repeat a request until it succeeds; `on_wait` runs between attempts and can stop by raising."""
    while True:
        try:
            return request(_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].name() not in _TRANSIENT_ERRORS or time.monotonic() > deadline:
                raise
        on_wait()


def _count_partitions(bootstrap: str, reader: Consumer, topic: str, on_wait: WaitCallback) -> int:
    deadline = time.monotonic() + _BROKER_TIMEOUT_S
    try:
        metadata = _retry_transient(
            lambda seconds: reader.list_topics(topic, timeout=seconds), deadline, on_wait
        ).topics[topic]
    except KafkaException as error:
        raise TopicAdminError(
            f"Cannot look up topic {topic} at {bootstrap}: {describe_kafka_error(error)}. "
            "Check that the broker is up."
        ) from error
    return 0 if metadata.error is not None else len(metadata.partitions)
