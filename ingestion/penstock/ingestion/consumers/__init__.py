"""Consumers without Spark: a group member, and a committer of group offsets."""

from penstock.ingestion.consumers.group_offsets import GroupOffsetCommitter, OffsetsByPartition
from penstock.ingestion.consumers.plain_consumer import ConsumerRecord, PartitionAssignment, PlainConsumer

__all__ = [
    "ConsumerRecord",
    "GroupOffsetCommitter",
    "OffsetsByPartition",
    "PartitionAssignment",
    "PlainConsumer",
]
