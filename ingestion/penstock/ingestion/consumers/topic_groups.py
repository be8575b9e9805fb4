"""Lists the consumer groups that have committed offsets of a topic."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupListing

from penstock.core.kafka_client import KafkaClientSettings, create_admin_client, describe_kafka_error
from penstock.ingestion.errors import ConsumerGroupError

REQUEST_TIMEOUT_S = 10.0
RETRY_INTERVAL_S = 0.2


@dataclass(frozen=True)
class TopicGroup:
    """A consumer group, and the number of partitions of a topic that it has offsets of."""

    name: str
    partition_count: int
    has_members: bool

    def __str__(self) -> str:
        partitions = "1 partition" if self.partition_count == 1 else f"{self.partition_count} partitions"
        members = ", and has members now" if self.has_members else ", and has no members"
        return f"{self.name} has offsets of {partitions}{members}"


def list_topic_groups(bootstrap: str, topic: str, client_settings: KafkaClientSettings) -> list[TopicGroup]:
    """Return the groups with committed offsets of a topic, sorted by name. Raises ConsumerGroupError."""
    admin = create_admin_client(bootstrap, client_settings)
    try:
        return sorted(_find_groups(admin, topic), key=lambda group: group.name)
    except KafkaException as error:
        raise ConsumerGroupError(
            f"Cannot list the consumer groups of topic {topic} at {bootstrap}: {describe_kafka_error(error)}"
        ) from error


def _list_groups(admin: AdminClient) -> Sequence[ConsumerGroupListing]:
    """Return all groups. A coordinator that loads its groups is asked again, until the timeout."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    while True:
        listing = admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S).result(2 * REQUEST_TIMEOUT_S)
        error = next((_unwrap_error(failure) for failure in listing.errors or ()), None)
        if error is None:
            return listing.valid or ()
        if not error.retriable() or time.monotonic() > deadline:
            raise KafkaException(error)
        time.sleep(RETRY_INTERVAL_S)


def _unwrap_error(failure: Exception) -> KafkaError:
    """Return the error of the library: it lists the errors of brokers as they are, or inside of an exception."""
    error = failure.args[0] if isinstance(failure, KafkaException) else failure
    assert isinstance(error, KafkaError)
    return error


def _find_groups(admin: AdminClient, topic: str) -> Iterator[TopicGroup]:
    listed_groups = _list_groups(admin)
    # A request has one group. All are sent before the first answer is awaited.
    requests = {
        group.group_id: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group.group_id)], request_timeout=REQUEST_TIMEOUT_S
        )[group.group_id]
        for group in listed_groups
    }
    states = {group.group_id: group.state for group in listed_groups}
    for name, answer in requests.items():
        partitions = answer.result(2 * REQUEST_TIMEOUT_S).topic_partitions or []
        count = sum(partition.topic == topic and partition.offset >= 0 for partition in partitions)
        if count:
            yield TopicGroup(name, count, states[name] is not ConsumerGroupState.EMPTY)
