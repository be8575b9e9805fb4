"""A plain member of a consumer group: at least once, with cooperative rebalancing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from penstock.core.kafka_client import PLAINTEXT_CLIENT, KafkaClientSettings, describe_kafka_error
from penstock.core.names import explain_unknown_name
from penstock.ingestion.consumers.topic_contents import read_headers
from penstock.ingestion.errors import ConsumerGroupError, TopicNotFoundError

_POLL_TIMEOUT_S = 0.1
_METADATA_TIMEOUT_S = 15.0
_REBALANCE_ERRORS = {"ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID"}


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One consumed record."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The partitions that this member currently holds, and the change that led to them."""

    change: str
    partitions: tuple[int, ...]


class PlainConsumer:
    """Consumes a topic as a member of a group, and commits the offsets of handled records.

    At least once: offsets are committed after `handle` returns. If a member fails before that, the next one handles
    its records again. A record whose handling failed is never committed.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        handle: Callable[[Sequence[ConsumerRecord]], None],
        *,
        on_assignment: Callable[[PartitionAssignment], None] = lambda _: None,
        max_poll_records: int = 500,
        client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
    ) -> None:
        self._topic = topic
        self._bootstrap = bootstrap
        self._handle = handle
        self._on_assignment = on_assignment
        self._max_poll_records = max_poll_records
        self._assigned_partitions: set[int] = set()
        self._settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "log_level": 2,
            **client_settings,
        }

    def run(self, stop: Event, max_records: int | None = None) -> int:
        """Consume until `stop` is set or `max_records` are handled; return the number handled."""
        consumer = Consumer(self._settings)
        handled = 0
        try:
            self._check_topic(consumer)
            consumer.subscribe(
                [self._topic],
                on_assign=self._on_partitions_assigned,
                on_revoke=self._on_partitions_revoked,
                on_lost=self._on_partitions_lost,
            )
            while not stop.is_set() and (max_records is None or handled < max_records):
                poll_limit = (
                    self._max_poll_records
                    if max_records is None
                    else min(self._max_poll_records, max_records - handled)
                )
                handled += self._poll_and_handle(consumer, poll_limit)
        except KafkaException as error:
            raise ConsumerGroupError(
                f"Cannot consume {self._topic} at {self._bootstrap}: {describe_kafka_error(error)}. "
                "Check that the broker is up."
            ) from error
        finally:
            consumer.close()
        return handled

    def _check_topic(self, consumer: Consumer) -> None:
        """Check that the topic exists: a group member waits silently for a topic that does not."""
        topics = consumer.list_topics(timeout=_METADATA_TIMEOUT_S).topics
        if self._topic not in topics:
            names = [name for name in topics if not name.startswith("__")]
            raise TopicNotFoundError(
                f"{explain_unknown_name('topic', self._topic, names, 'penstock topics list')} (broker: "
                f"{self._bootstrap}; `penstock topics apply` creates declared topics)"
            )

    def _poll_and_handle(self, consumer: Consumer, poll_limit: int) -> int:
        records = [_to_record(message) for message in consumer.consume(poll_limit, timeout=_POLL_TIMEOUT_S)]
        if not records:
            return 0
        self._handle(records)
        next_offsets: dict[int, int] = {}
        for record in records:
            next_offsets[record.partition] = record.offset + 1
        committable = [
            TopicPartition(self._topic, *pair)
            for pair in next_offsets.items()
            if pair[0] in self._assigned_partitions
        ]
        if committable:
            self._commit_offsets(consumer, committable)
        return len(records)

    def _commit_offsets(self, consumer: Consumer, partition_offsets: list[TopicPartition]) -> None:
        try:
            consumer.commit(offsets=partition_offsets, asynchronous=False)
        except KafkaException as error:
            # The group has rebalanced without this member. The new owner of the partitions handles the records
            # again.
            if error.args[0].name() not in _REBALANCE_ERRORS:
                raise

    def _on_partitions_assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        self._assigned_partitions |= {partition.partition for partition in partitions}
        self._on_assignment(
            PartitionAssignment(
                f"assigned {_format_partitions(partitions)}", tuple(sorted(self._assigned_partitions))
            )
        )

    def _on_partitions_revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        self._drop_partitions("revoked", partitions)

    def _on_partitions_lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._drop_partitions("lost", partitions)

    def _drop_partitions(self, change: str, partitions: list[TopicPartition]) -> None:
        self._assigned_partitions -= {partition.partition for partition in partitions}
        self._on_assignment(
            PartitionAssignment(
                f"{change} {_format_partitions(partitions)}", tuple(sorted(self._assigned_partitions))
            )
        )


def _format_partitions(partitions: list[TopicPartition]) -> str:
    return ", ".join(str(partition.partition) for partition in partitions) or "none"


def _to_record(message: Message) -> ConsumerRecord:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    key, value = message.key(), message.value()
    return ConsumerRecord(
        topic, partition, offset, _to_bytes(key), _to_bytes(value) or b"", read_headers(message)
    )


def _to_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
