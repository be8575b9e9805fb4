"""Topics as code: declared in contracts, compared with the cluster, made so."""

from penstock.ingestion.topics.cluster import apply_plan, ensure_topics, observe, plan_for
from penstock.ingestion.topics.contents import PartitionContents, TopicContents, contents
from penstock.ingestion.topics.model import Action, Change, TopicPlan, TopicSpec, declared, environments
from penstock.ingestion.topics.planning import plan_topics

__all__ = [
    "Action",
    "Change",
    "PartitionContents",
    "TopicContents",
    "TopicPlan",
    "TopicSpec",
    "apply_plan",
    "contents",
    "declared",
    "ensure_topics",
    "environments",
    "observe",
    "plan_for",
    "plan_topics",
]
