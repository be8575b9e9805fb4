"""Topics as code: plans and applies the changes that make a cluster match its contracts."""

from penstock.ingestion.topics.cluster import (
    apply_topic_plan,
    ensure_topics,
    plan_cluster_changes,
    read_cluster_topics,
)
from penstock.ingestion.topics.description import PartitionOffsetRange, TopicDescription, describe_topics
from penstock.ingestion.topics.planning import plan_topics
from penstock.ingestion.topics.topic_specs import (
    TopicAction,
    TopicChange,
    TopicPlan,
    TopicSpec,
    build_topic_specs,
    list_environments,
)

__all__ = [
    "PartitionOffsetRange",
    "TopicAction",
    "TopicChange",
    "TopicDescription",
    "TopicPlan",
    "TopicSpec",
    "apply_topic_plan",
    "build_topic_specs",
    "describe_topics",
    "ensure_topics",
    "list_environments",
    "plan_cluster_changes",
    "plan_topics",
    "read_cluster_topics",
]
