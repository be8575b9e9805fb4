"""Consumers without Spark: a group member, a committer of group offsets, and the groups of a topic."""

from penstock.ingestion.consumers.group_offsets import GroupOffsetCommitter, OffsetsByPartition
from penstock.ingestion.consumers.plain_consumer import ConsumerRecord, PartitionAssignment, PlainConsumer
from penstock.ingestion.consumers.topic_groups import TopicGroup, list_topic_groups

__all__ = [
    "ConsumerRecord",
    "GroupOffsetCommitter",
    "OffsetsByPartition",
    "PartitionAssignment",
    "PlainConsumer",
    "TopicGroup",
    "list_topic_groups",
]
