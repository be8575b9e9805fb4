"""Telling Kafka how far readers are that keep their offsets elsewhere, so that any tool sees their lag."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from penstock.ingestion.clients import PLAIN, ClientSettings, admin_client, said
from penstock.ingestion.errors import GroupError

Offsets = Mapping[tuple[str, int], int]


class GroupOffsets:
    """The offsets of consumer groups that nobody joins: a stream host's, one for each stream.

    `report` does not wait: one report of a group is on its way at a time, and what is told meanwhile goes out
    after it, newest offsets only. Nothing is promised of it: these offsets are for people to look at, and nobody
    starts from them. A refusal is told to `on_refusal`; Kafka refuses them where a member has joined the group.
    Safe to use from several threads.
    """

    def __init__(
        self,
        bootstrap: str,
        client: ClientSettings = PLAIN,
        seconds: float = 10.0,
        on_refusal: Callable[[GroupError], None] = lambda _: None,
    ) -> None:
        self._admin = admin_client(bootstrap, client)
        self._bootstrap = bootstrap
        self._seconds = seconds
        self._on_refusal = on_refusal
        self._change = threading.Condition()
        self._asked: set[str] = set()
        self._waiting: dict[str, dict[tuple[str, int], int]] = {}

    def report(self, group: str, offsets: Offsets) -> None:
        """Say which offset a group reads next, by topic and partition."""
        if not offsets:
            return
        with self._change:
            if group in self._asked:
                self._waiting.setdefault(group, {}).update(offsets)
                return
            self._asked.add(group)
        self._ask(group, offsets)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is on its way any more; say whether that came to be in time."""
        with self._change:
            return self._change.wait_for(lambda: not self._asked, seconds)

    def read(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's offsets as Kafka has them."""
        request = [ConsumerGroupTopicPartitions(group)]
        try:
            found = self._admin.list_consumer_group_offsets(request, request_timeout=self._seconds)
            places = found[group].result(self._seconds * 2).topic_partitions or []
        except KafkaException as error:
            raise GroupError(
                f"the offsets of group {group} at {self._bootstrap} cannot be read: {said(error)}"
            ) from error
        return {(place.topic, place.partition): place.offset for place in places}

    def _ask(self, group: str, offsets: Offsets) -> None:
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        answers = self._admin.alter_consumer_group_offsets(request, request_timeout=self._seconds)
        answers[group].add_done_callback(lambda answer: self._answered(group, answer))

    def _answered(self, group: str, answer: Future[ConsumerGroupTopicPartitions]) -> None:
        refusal = _refusal(answer)
        if refusal is not None:
            self._on_refusal(
                GroupError(
                    f"the offsets of group {group} cannot be kept at {self._bootstrap}: {refusal}; is the "
                    "broker up, and nobody consuming under that name?"
                )
            )
        with self._change:
            following = self._waiting.pop(group, None)
            if following is None:
                self._asked.discard(group)
                self._change.notify_all()
        if following is not None:
            self._ask(group, following)


def _refusal(answer: Future[ConsumerGroupTopicPartitions]) -> str | None:
    """Return why offsets were not taken, as a whole or for one of their partitions."""
    error = answer.exception()
    if error is not None:
        return said(error) if isinstance(error, KafkaException) else str(error)
    places = answer.result().topic_partitions or []
    return next((place.error.str() for place in places if place.error is not None), None)
