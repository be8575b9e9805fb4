"""Reading topics without Spark: group offsets for others to see, a plain consumer, and none between."""

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
