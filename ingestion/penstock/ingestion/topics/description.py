"""Describes the topics of a cluster: partitions, replicas, retention and offsets."""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from penstock.core.kafka_client import (
    PLAINTEXT_CLIENT,
    KafkaClientSettings,
    create_admin_client,
    describe_kafka_error,
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
    oldest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client has no types
    newest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client has no types
    start_offsets, end_offsets = (
        _read_offsets(bootstrap, client_settings, partitions, offset_spec) for offset_spec in (oldest, newest)
    )
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


def _read_offsets(
    bootstrap: str,
    client_settings: KafkaClientSettings,
    partitions: Sequence[tuple[str, int]],
    offset_spec: OffsetSpec,
) -> dict[tuple[str, int], int]:
    try:
        # Keep a reference to the client until the futures complete: they never complete after it is freed.
        admin = create_admin_client(bootstrap, client_settings)
        futures = admin.list_offsets(
            {TopicPartition(*partition_key): offset_spec for partition_key in partitions},
            request_timeout=_OFFSETS_TIMEOUT_S,
        )
        offsets = {
            topic_partition: future.result(2 * _OFFSETS_TIMEOUT_S).offset
            for topic_partition, future in futures.items()
        }
        return {
            (topic_partition.topic, topic_partition.partition): offset
            for topic_partition, offset in offsets.items()
        }
    except KafkaException as error:
        raise TopicAdminError(
            f"Cannot read the offsets at {bootstrap}: {describe_kafka_error(error)}. Check that the broker is up."
        ) from error
