"""A plain consumer of a group: at least once, with partitions that move when members come and go."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from penstock.ingestion.clients import PLAIN, ClientSettings, said
from penstock.ingestion.errors import GroupError

_WAIT_SECONDS = 0.1
_LOOK_SECONDS = 15.0
_MOVED_ON = {"ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID"}


@dataclass(frozen=True, slots=True)
class Received:
    """One record as it was read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions that this member holds now, and what changed them."""

    change: str
    held: tuple[int, ...]


class PlainConsumer:
    """Reads a topic as a member of a group, and commits what was handled.

    At least once: offsets are committed after `handle` has returned, so a member that dies in between leaves its
    records to the next one, which handles them again. Never fewer: a record whose handling failed is not committed.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        handle: Callable[[Sequence[Received]], None],
        *,
        tell: Callable[[Assignment], None] = lambda _: None,
        at_once: int = 500,
        client: ClientSettings = PLAIN,
    ) -> None:
        self._topic = topic
        self._bootstrap = bootstrap
        self._handle = handle
        self._tell = tell
        self._at_once = at_once
        self._held: set[int] = set()
        self._settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "log_level": 2,
            **client,
        }

    def run(self, stop: Event, count: int | None = None) -> int:
        """Consume until `stop` is set or so many records were handled; leave the group and return the number."""
        consumer = Consumer(self._settings)
        handled = 0
        try:
            self._check_topic(consumer)
            consumer.subscribe(
                [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            while not stop.is_set() and (count is None or handled < count):
                room = self._at_once if count is None else min(self._at_once, count - handled)
                handled += self._handle_some(consumer, room)
        except KafkaException as error:
            raise GroupError(
                f"{self._topic} at {self._bootstrap} cannot be consumed: {said(error)}; is the broker up?"
            ) from error
        finally:
            consumer.close()
        return handled

    def _check_topic(self, consumer: Consumer) -> None:
        """Look for the topic first: a member of a group waits without a word for one that is not there."""
        found = consumer.list_topics(self._topic, timeout=_LOOK_SECONDS).topics[self._topic]
        if found.error is not None:
            raise GroupError(
                f"there is no topic {self._topic} at {self._bootstrap}; "
                "`penstock topics apply` makes those of the catalog"
            )

    def _handle_some(self, consumer: Consumer, room: int) -> int:
        records = [_received(message) for message in consumer.consume(room, timeout=_WAIT_SECONDS)]
        if not records:
            return 0
        self._handle(records)
        following: dict[int, int] = {}
        for record in records:
            following[record.partition] = record.offset + 1
        held = [TopicPartition(self._topic, *pair) for pair in following.items() if pair[0] in self._held]
        if held:
            self._commit(consumer, held)
        return len(records)

    def _commit(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        try:
            consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            # The group moved on without this member: whoever holds the partitions now handles the records again.
            if error.args[0].name() not in _MOVED_ON:
                raise

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        self._held |= {place.partition for place in partitions}
        self._tell(Assignment(f"given {_names(partitions)}", tuple(sorted(self._held))))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        self._gone("handed over", partitions)

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._gone("lost", partitions)

    def _gone(self, how: str, partitions: list[TopicPartition]) -> None:
        self._held -= {place.partition for place in partitions}
        self._tell(Assignment(f"{how} {_names(partitions)}", tuple(sorted(self._held))))


def _names(partitions: list[TopicPartition]) -> str:
    return ", ".join(str(place.partition) for place in partitions) or "nothing"


def _received(message: Message) -> Received:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    key, value = message.key(), message.value()
    return Received(topic, partition, offset, _bytes(key), _bytes(value) or b"")


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
