"""Reads the ids of topics and of their cluster.

The id of a topic is unique over all clusters, and changes when the topic is created again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

REQUEST_TIMEOUT_S = 10.0


def fetch_topic_ids(
    admin: AdminClient, topics: Collection[str], timeout_s: float = REQUEST_TIMEOUT_S
) -> dict[str, str]:
    """Return the id of each topic; raise KafkaException if one does not exist or no broker answers."""
    answers = admin.describe_topics(TopicCollection(list(topics)), request_timeout=timeout_s)
    return {topic: str(answer.result(2 * timeout_s).topic_id) for topic, answer in answers.items()}


@dataclass(frozen=True)
class TopicIds:
    """The id of a cluster, and the ids of topics in it."""

    cluster_id: str
    by_topic: Mapping[str, str]


def fetch_cluster_topic_ids(
    admin: AdminClient, topics: Collection[str], timeout_s: float = REQUEST_TIMEOUT_S
) -> TopicIds:
    """Return the ids of topics with that of their cluster; raise KafkaException as `fetch_topic_ids` does."""
    metadata = admin.list_topics(timeout=timeout_s)
    return TopicIds(str(metadata.cluster_id), fetch_topic_ids(admin, topics, timeout_s))
