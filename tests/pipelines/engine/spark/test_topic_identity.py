"""A stream compares the ids of its topics with one client, and finds a topic that was created again."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.patience import PATIENCE_S

from penstock.core import kafka_client
from penstock.core.kafka_client import BrokerAccess
from penstock.core.waiting import wait_until
from penstock.engine.errors import OtherTopicError, TopicUnavailableError
from penstock.engine.spark.kafka import topic_identity
from penstock.engine.spark.kafka.topic_identity import CHECK_INTERVAL_MS, TopicIdentity
from penstock.infra.local_broker import LocalBroker

pytestmark = pytest.mark.kafka
TOPIC = "compared"


def test_all_comparisons_share_a_client_and_find_a_topic_that_was_created_again(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comparison made a client of its own, with its threads and connections."""
    clients: list[AdminClient] = []

    def create_client(bootstrap: str, settings: kafka_client.KafkaClientSettings) -> AdminClient:
        clients.append(kafka_client.create_admin_client(bootstrap, settings))
        return clients[-1]

    monkeypatch.setattr(topic_identity, "create_admin_client", create_client)
    broker.create_topic(TOPIC, 1)
    now = [0]
    topics = TopicIdentity("minute", [TOPIC], tmp_path, BrokerAccess(broker.bootstrap), lambda: now[0])
    topics.check_at_start(has_read=False)
    for _ in range(5):
        now[0] += CHECK_INTERVAL_MS
        topics.check_while_running()
    assert len(clients) == 1
    clients[0].delete_topics([TOPIC])[TOPIC].result(PATIENCE_S)
    wait_until(
        lambda: TOPIC not in clients[0].list_topics(timeout=PATIENCE_S).topics,
        PATIENCE_S,
        "the topic to be gone",
    )
    broker.create_topic(TOPIC, 1)
    now[0] += CHECK_INTERVAL_MS
    with pytest.raises(OtherTopicError, match="stream minute: compared is another topic now"):
        topics.check_while_running()
    assert len(clients) == 1


def test_a_topic_that_does_not_exist_is_named_with_the_fix(broker: LocalBroker, tmp_path: Path) -> None:
    topics = TopicIdentity("minute", ["absent"], tmp_path, BrokerAccess(broker.bootstrap), lambda: 0)
    with pytest.raises(
        TopicUnavailableError, match=r"topic absent does not exist\. Create it with `penstock topics apply`"
    ):
        topics.check_at_start(has_read=False)
