"""Checks that acknowledged records are in the topic exactly once, or have expired."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.core.kafka_topics import TopicIds
from penstock.ingestion.ledger.entries import Acknowledgement, ProducerSession
from penstock.ingestion.ledger.journal import read_entries
from penstock.ingestion.ledger.reader import list_segments
from penstock.quality.audit.offset_runs import NO_OFFSETS, OffsetRun, OffsetRunsByPartition, merge_runs
from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.ledger_rows import TopicPartition


@dataclass(frozen=True)
class PartitionLimits:
    """The offsets [low, high) that a partition has. Offsets below `low` have expired."""

    low: int
    high: int


OffsetRunsOfTopic = Mapping[TopicPartition, Sequence[OffsetRun]]
"""The offsets that a producer reports as delivered, by partition."""


@dataclass
class DeliveryClaims:
    """What a delivery ledger says of one topic: acknowledged offsets, in the order of writing.

    `lost_records` counts acknowledged records of an earlier topic of this name in the same cluster. Records in
    another cluster are left out. Sessions of version 0.1.0 do not know their topic; their offsets count.
    """

    runs: dict[TopicPartition, list[OffsetRun]] = field(default_factory=dict)
    lost_records: int = 0

    @property
    def record_count(self) -> int:
        """The number of acknowledged records of the present topic."""
        return sum(length for runs in self.runs.values() for _, length in runs)


def read_topic_claims(topic: str, topic_ids: TopicIds, directory: Path) -> DeliveryClaims:
    """Return what a delivery ledger says of one topic."""
    claims = DeliveryClaims()
    targets: Sequence[TopicPartition] = []
    cluster_id, topic_id = topic_ids.cluster_id, topic_ids.by_topic[topic]
    for path in list_segments(directory):
        for entry in read_entries(path):
            if isinstance(entry, ProducerSession):
                targets = [(name, partition) for name, partition in entry.targets]
                cluster_id = entry.cluster_id or topic_ids.cluster_id
                topic_id = entry.topic_ids.get(topic, topic_ids.by_topic[topic])
            elif isinstance(entry, Acknowledgement) and cluster_id == topic_ids.cluster_id:
                for target_id, runs in entry.offset_runs.items():
                    if targets[target_id][0] == topic and topic_id == topic_ids.by_topic[topic]:
                        claims.runs.setdefault(targets[target_id], []).extend(runs)
                    elif targets[target_id][0] == topic:
                        claims.lost_records += sum(length for _, length in runs)
    return claims


def check_claims(
    ledgers: Mapping[str, OffsetRunsOfTopic],
    bounds: Mapping[TopicPartition, PartitionLimits],
    held_runs: OffsetRunsByPartition,
) -> Iterator[AuditDifference]:
    """Yield acknowledged offsets that two producers claim, that are beyond the topic, or that have no record.

    `held_runs` has the offsets with a record, by partition. A partition that it does not contain, and every
    partition of a compacted topic, is checked against its bounds only.
    """
    for partition, claims in sorted(_claims_by_partition(ledgers).items()):
        yield from _find_double_claims(partition, claims)
        limit = bounds.get(partition)
        if limit is None:
            yield AuditDifference(
                _partition_text(partition),
                f"{claims[0][1]} delivered to it, but the topic has no such partition",
            )
            continue
        merged_runs = merge_runs(run for run, _ in claims)
        for first, length in zip(merged_runs.firsts.tolist(), merged_runs.lengths.tolist(), strict=True):
            yield from _find_lost(partition, max(first, limit.low), first + length, limit, held_runs)


def find_deleted_topics(topic: str, ledgers: Mapping[str, DeliveryClaims]) -> Iterator[AuditDifference]:
    """Yield the producers whose acknowledged records went with an earlier topic of this name."""
    for producer, claims in ledgers.items():
        if claims.lost_records:
            yield AuditDifference(
                topic,
                f"{claims.lost_records:,} records acknowledged to {producer} were in an earlier topic of this "
                "name, which was deleted",
            )


def _find_lost(
    partition: TopicPartition, first: int, end: int, limit: PartitionLimits, held_runs: OffsetRunsByPartition
) -> Iterator[AuditDifference]:
    if end > limit.high:
        yield AuditDifference(
            f"{_partition_text(partition)} offset {max(first, limit.high)}",
            f"acknowledged, but the topic ends at {limit.high}",
        )
    if partition in held_runs:
        missing_offset = held_runs.get(partition, NO_OFFSETS).find_first_missing(first, min(end, limit.high))
        if missing_offset is not None:
            yield AuditDifference(
                f"{_partition_text(partition)} offset {missing_offset}",
                "acknowledged, but the topic has no record there",
            )


def _find_double_claims(
    partition: TopicPartition, claims: Iterable[tuple[OffsetRun, str]]
) -> Iterator[AuditDifference]:
    last_end, last_producer = -1, ""
    for (first, length), producer in sorted(claims):
        if first < last_end:
            yield AuditDifference(
                f"{_partition_text(partition)} offset {first}",
                f"acknowledged to both {producer} and {last_producer}",
            )
        if first + length > last_end:
            last_end, last_producer = first + length, producer


def _claims_by_partition(
    ledgers: Mapping[str, OffsetRunsOfTopic],
) -> Mapping[TopicPartition, list[tuple[OffsetRun, str]]]:
    claims_by_partition: dict[TopicPartition, list[tuple[OffsetRun, str]]] = {}
    for producer, partitions in ledgers.items():
        for partition, runs in partitions.items():
            claims_by_partition.setdefault(partition, []).extend((run, producer) for run in runs)
    return claims_by_partition


def _partition_text(partition: TopicPartition) -> str:
    return f"{partition[0]}/{partition[1]}"
