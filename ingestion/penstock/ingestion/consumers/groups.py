"""Telling Kafka how far readers are that keep their offsets elsewhere, so that any tool sees their lag.

Offsets are committed as consumers do it that assign themselves. The admin client can set them, too; but one whose
broker goes away under such a request aborts the whole process: librdkafka frees what it still needs.
"""

import threading
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from penstock.ingestion.clients import PLAIN, ClientSettings, admin_client, said
from penstock.ingestion.errors import GroupError

Offsets = Mapping[tuple[str, int], int]


class GroupOffsets:
    """The offsets of consumer groups that nobody joins: a stream host's, one for each stream.

    `report` does not wait: a thread of its own commits for one group after the other, newest offsets only. Nothing
    is promised of it: these offsets are for people to look at, and nobody starts from them. A refusal is told to
    `on_refusal`; Kafka refuses them where a member has joined the group. Safe to use from several threads.
    """

    def __init__(
        self,
        bootstrap: str,
        client: ClientSettings = PLAIN,
        seconds: float = 10.0,
        on_refusal: Callable[[GroupError], None] = lambda _: None,
    ) -> None:
        self._bootstrap = bootstrap
        self._client = client
        self._seconds = seconds
        self._on_refusal = on_refusal
        self._change = threading.Condition()
        self._waiting: dict[str, dict[tuple[str, int], int]] = {}
        self._at_work = False
        self._closed = False
        self._thread = threading.Thread(target=self._commit_all, name="offsets of groups", daemon=True)
        self._thread.start()

    def report(self, group: str, offsets: Offsets) -> None:
        """Say which offset a group reads next, by topic and partition."""
        if offsets:
            with self._change:
                self._waiting.setdefault(group, {}).update(offsets)
                self._change.notify_all()

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is on its way any more; say whether that came to be in time."""
        with self._change:
            return self._change.wait_for(lambda: not self._waiting and not self._at_work, seconds)

    def close(self, seconds: float) -> None:
        """Have what was reported arrive, as far as the broker answers in time, and let go of it."""
        self.settle(seconds)
        with self._change:
            self._closed = True
            self._change.notify_all()

    def read(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's offsets as Kafka has them."""
        request = [ConsumerGroupTopicPartitions(group)]
        try:
            admin = admin_client(self._bootstrap, self._client)
            found = admin.list_consumer_group_offsets(request, request_timeout=self._seconds)
            places = found[group].result(self._seconds * 2).topic_partitions or []
        except KafkaException as error:
            raise GroupError(
                f"the offsets of group {group} at {self._bootstrap} cannot be read: {said(error)}"
            ) from error
        return {(place.topic, place.partition): place.offset for place in places}

    def _commit_all(self) -> None:
        consumers: dict[str, Consumer] = {}
        while (asked := self._next()) is not None:
            group, offsets = asked
            if group not in consumers:
                consumers[group] = self._consumer(group)
            if refusal := _refusal(consumers[group], offsets):
                self._on_refusal(
                    GroupError(
                        f"the offsets of group {group} cannot be kept at {self._bootstrap}: {refusal}; is the "
                        "broker up, and nobody consuming under that name?"
                    )
                )
        for consumer in consumers.values():
            consumer.close()

    def _next(self) -> tuple[str, Offsets] | None:
        """Wait for a group whose offsets are to be kept; None once there is to be an end."""
        with self._change:
            self._at_work = False
            self._change.notify_all()
            self._change.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            self._at_work = True
            group = next(iter(self._waiting))
            return group, self._waiting.pop(group)

    def _consumer(self, group: str) -> Consumer:
        """A consumer that consumes nothing, and commits for its group."""
        wait = round(self._seconds * 1000)
        ours = {
            "log_level": 0,
            "enable.auto.commit": False,
            "session.timeout.ms": wait,
            "socket.timeout.ms": wait,
        }
        return Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, **ours, **self._client})


def _refusal(consumer: Consumer, offsets: Offsets) -> str | None:
    """Commit, and return why offsets were not taken, as a whole or for one of their partitions."""
    places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    try:
        kept = consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as error:
        return said(error)
    return next((place.error.str() for place in kept or [] if place.error is not None), None)
