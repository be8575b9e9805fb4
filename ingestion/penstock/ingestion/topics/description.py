"""Describes the topics of a cluster: partitions, replicas, retention and offsets."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import KafkaException

from penstock.core.kafka_client import (
    PLAINTEXT_CLIENT,
    KafkaClientSettings,
    describe_kafka_error,
)
from penstock.core.kafka_offsets import (
    PartitionKey,
    fetch_end_offsets,
    fetch_first_offsets,
    open_offset_consumer,
)
from penstock.ingestion.errors import TopicAdminError
from penstock.ingestion.topics.cluster import read_cluster_topics

_OFFSETS_TIMEOUT_S = 15.0
RETENTION_CONFIG, CLEANUP_POLICY_CONFIG = "retention.ms", "cleanup.policy"


@dataclass(frozen=True)
class PartitionOffsetRange:
    """A partition and its offsets: the first offset, and the offset of the next record."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int

    @property
    def record_count(self) -> int:
        """The number of offsets. In a compacted topic, some of them have no record."""
        return self.end_offset - self.start_offset


@dataclass(frozen=True)
class TopicDescription:
    """One topic. A `retention_ms` of -1 means that records are retained forever."""

    name: str
    replicas: int
    retention_ms: int
    is_compacted: bool
    partitions: tuple[PartitionOffsetRange, ...]

    @property
    def record_count(self) -> int:
        """The number of offsets in all partitions."""
        return sum(partition.record_count for partition in self.partitions)


def describe_topics(
    bootstrap: str, client_settings: KafkaClientSettings = PLAINTEXT_CLIENT
) -> tuple[TopicDescription, ...]:
    """Return the topics of the cluster, without internal ones, with the offsets of each partition."""
    specs = read_cluster_topics(
        bootstrap, (RETENTION_CONFIG, CLEANUP_POLICY_CONFIG), client_settings=client_settings
    )
    partitions = [(name, number) for name, spec in specs.items() for number in range(spec.partitions)]
    start_offsets, end_offsets = _read_offset_ranges(bootstrap, client_settings, partitions)
    return tuple(
        TopicDescription(
            name,
            spec.replicas,
            int(dict(spec.settings).get(RETENTION_CONFIG, "-1")),
            "compact" in dict(spec.settings).get(CLEANUP_POLICY_CONFIG, ""),
            tuple(
                PartitionOffsetRange(name, number, start_offsets[name, number], end_offsets[name, number])
                for number in range(spec.partitions)
            ),
        )
        for name, spec in sorted(specs.items())
    )


def _read_offset_ranges(
    bootstrap: str, client_settings: KafkaClientSettings, partitions: Sequence[PartitionKey]
) -> tuple[dict[PartitionKey, int], dict[PartitionKey, int]]:
    """Return the first and the end offset of each partition."""
    try:
        with closing(open_offset_consumer(bootstrap, client_settings)) as consumer:
            return (
                fetch_first_offsets(consumer, partitions, _OFFSETS_TIMEOUT_S),
                fetch_end_offsets(consumer, partitions, _OFFSETS_TIMEOUT_S),
            )
    except KafkaException as error:
        raise TopicAdminError(
            f"Cannot read the offsets at {bootstrap}: {describe_kafka_error(error)}. Check that the broker is up."
        ) from error
