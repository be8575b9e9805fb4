"""Reads the offsets of partitions from the broker: the first, the end, and the first at or after a time.

All functions take a consumer, which needs no subscription, and send one request to each broker. A consumer is used
so that every reader asks in the same way. An admin client's `list_offsets` also survives a broker that is away; see
core.kafka_client.
"""

from collections.abc import Collection

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, TopicPartition

from penstock.core.kafka_client import KafkaClientSettings

PartitionKey = tuple[str, int]
"""A topic and the number of a partition."""


def open_offset_consumer(
    bootstrap: str, client_settings: KafkaClientSettings, *, committed_only: bool = False
) -> Consumer:
    """Return a consumer for the functions of this module; close it after use.

    With `committed_only`, the end of a partition is before the first record of an open transaction.
    """
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            **client_settings,
            "group.id": "penstock-offsets",
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        }
    )


def fetch_first_offsets(
    consumer: Consumer, partitions: Collection[PartitionKey], timeout_s: float
) -> dict[PartitionKey, int]:
    """Return the offset of the oldest record of each partition; raise KafkaException unless all are known."""
    return _fetch_offsets(consumer, partitions, OFFSET_BEGINNING, timeout_s)


def fetch_end_offsets(
    consumer: Consumer, partitions: Collection[PartitionKey], timeout_s: float, *, skip_errors: bool = False
) -> dict[PartitionKey, int]:
    """Return the offset after the newest record of each partition.

    Raises KafkaException when a partition is unknown or its broker does not answer. With `skip_errors` such
    partitions are missing from the result, and the error is raised only when no partition has an answer.
    """
    return _fetch_offsets(consumer, partitions, OFFSET_END, timeout_s, skip_errors=skip_errors)


def fetch_offsets_at(
    consumer: Consumer, partitions: Collection[PartitionKey], timestamp_ms: int, timeout_s: float
) -> dict[PartitionKey, int]:
    """Return the first offset of each partition with this timestamp or a later one.

    Partitions without such a record are missing from the result. Raises KafkaException as `fetch_first_offsets`.
    """
    return _fetch_offsets(consumer, partitions, timestamp_ms, timeout_s)


def _fetch_offsets(
    consumer: Consumer,
    partitions: Collection[PartitionKey],
    timestamp: int,
    timeout_s: float,
    *,
    skip_errors: bool = False,
) -> dict[PartitionKey, int]:
    """Return the offsets at a timestamp, which in Kafka's protocol may also be OFFSET_BEGINNING or OFFSET_END."""
    if not partitions:
        return {}
    requests = [TopicPartition(topic, partition, timestamp) for topic, partition in partitions]
    answers = consumer.offsets_for_times(requests, timeout=timeout_s)
    errors = [answer.error for answer in answers if answer.error is not None]
    if errors and not skip_errors:
        raise KafkaException(errors[0])
    return {
        (answer.topic, answer.partition): answer.offset
        for answer in answers
        if answer.error is None and answer.offset >= 0
    }
