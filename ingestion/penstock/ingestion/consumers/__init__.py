"""Consumers without Spark: a group member, a committer of group offsets, reading without a broker."""

from penstock.ingestion.consumers.brokerless import consume_without_broker
from penstock.ingestion.consumers.group_offsets import GroupOffsetCommitter, OffsetsByPartition
from penstock.ingestion.consumers.plain_consumer import ConsumerRecord, PartitionAssignment, PlainConsumer

__all__ = [
    "ConsumerRecord",
    "GroupOffsetCommitter",
    "OffsetsByPartition",
    "PartitionAssignment",
    "PlainConsumer",
    "consume_without_broker",
]
