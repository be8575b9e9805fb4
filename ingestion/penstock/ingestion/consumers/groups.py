"""Telling Kafka how far a reader is that keeps its offsets elsewhere, so that any tool sees its lag."""

from collections.abc import Mapping
from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from penstock.ingestion.clients import PLAIN, ClientSettings, admin_client
from penstock.ingestion.errors import GroupError

Offsets = Mapping[tuple[str, int], int]


class GroupOffsets:
    """The offsets of a consumer group that nobody joins: a stream host's, by the name of its stream.

    `report` does not wait and promises nothing: these offsets are for people to look at, and the next report
    repeats them. `reported` waits and says how the last one went. Where a member has joined the group, Kafka
    refuses them.
    """

    def __init__(
        self, bootstrap: str, group: str, seconds: float = 10.0, client: ClientSettings = PLAIN
    ) -> None:
        self._admin = admin_client(bootstrap, client)
        self._bootstrap = bootstrap
        self._group = group
        self._seconds = seconds
        self._last: Future[ConsumerGroupTopicPartitions] | None = None

    def report(self, offsets: Offsets) -> None:
        """Say which offset is read next, by topic and partition; skipped while an earlier report is on its way."""
        if not offsets or (self._last is not None and not self._last.done()):
            return
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(self._group, places)]
        self._last = self._admin.alter_consumer_group_offsets(request, request_timeout=self._seconds)[
            self._group
        ]

    def reported(self) -> None:
        """Wait for the last report; raise GroupError if the broker refused it or did not answer."""
        if self._last is None:
            return
        try:
            self._last.result(self._seconds * 2)
        except (KafkaException, TimeoutError) as error:
            raise GroupError(
                f"the offsets of group {self._group} cannot be kept at {self._bootstrap}: {error}; is somebody "
                "consuming under that name?"
            ) from error

    def read(self) -> dict[tuple[str, int], int]:
        """Return the group's offsets as Kafka has them."""
        request = [ConsumerGroupTopicPartitions(self._group)]
        try:
            found = self._admin.list_consumer_group_offsets(request, request_timeout=self._seconds)
            places = found[self._group].result(self._seconds * 2).topic_partitions or []
        except (KafkaException, TimeoutError) as error:
            raise GroupError(
                f"the offsets of group {self._group} at {self._bootstrap} cannot be read: {error}"
            ) from error
        return {(place.topic, place.partition): place.offset for place in places}
