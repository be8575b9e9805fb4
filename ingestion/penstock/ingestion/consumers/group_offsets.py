"""Telling Kafka how far readers are that keep their offsets elsewhere, so that any tool sees their lag.

Offsets are committed as consumers do it that assign themselves. The admin client can set them, too; but one whose
broker goes away under such a request aborts the whole process: librdkafka frees what it still needs.
"""

import threading
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from penstock.core.kafka_client import (
    PLAINTEXT_CLIENT,
    KafkaClientSettings,
    create_admin_client,
    describe_kafka_error,
)
from penstock.ingestion.errors import ConsumerGroupError

OffsetsByPartition = Mapping[tuple[str, int], int]


class GroupOffsetCommitter:
    """The offsets of consumer groups that nobody joins: a stream host's, one for each stream.

    `report` does not wait: a thread of its own commits for one group after the other, newest offsets only. Nothing
    is promised of it: these offsets are for people to look at, and nobody starts from them. A refusal is told to
    `on_refusal`; Kafka refuses them where a member has joined the group. Safe to use from several threads.
    """

    def __init__(
        self,
        bootstrap: str,
        client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
        timeout_s: float = 10.0,
        on_refusal: Callable[[ConsumerGroupError], None] = lambda _: None,
    ) -> None:
        self._bootstrap = bootstrap
        self._client_settings = client_settings
        self._timeout_s = timeout_s
        self._on_refusal = on_refusal
        self._condition = threading.Condition()
        self._pending: dict[str, dict[tuple[str, int], int]] = {}
        self._is_committing = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._run_commit_loop, name="offsets of groups", daemon=True)
        self._thread.start()

    def report(self, group: str, offsets: OffsetsByPartition) -> None:
        """Say which offset a group reads next, by topic and partition."""
        if offsets:
            with self._condition:
                self._pending.setdefault(group, {}).update(offsets)
                self._condition.notify_all()

    def wait_until_committed(self, timeout_s: float) -> bool:
        """Wait until nothing is on its way any more; say whether that came to be in time."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._pending and not self._is_committing, timeout_s)

    def close(self, timeout_s: float) -> None:
        """Have what was reported arrive, as far as the broker answers in time, and let go of it."""
        self.wait_until_committed(timeout_s)
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def read_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's offsets as Kafka has them."""
        request = [ConsumerGroupTopicPartitions(group)]
        try:
            admin = create_admin_client(self._bootstrap, self._client_settings)
            futures = admin.list_consumer_group_offsets(request, request_timeout=self._timeout_s)
            partitions = futures[group].result(self._timeout_s * 2).topic_partitions or []
        except KafkaException as error:
            raise ConsumerGroupError(
                f"the offsets of group {group} at {self._bootstrap} cannot be read: {describe_kafka_error(error)}"
            ) from error
        return {(partition.topic, partition.partition): partition.offset for partition in partitions}

    def _run_commit_loop(self) -> None:
        consumers: dict[str, Consumer] = {}
        while (pending := self._take_next_pending()) is not None:
            group, offsets = pending
            if group not in consumers:
                consumers[group] = self._create_consumer(group)
            if refusal := _commit_offsets(consumers[group], offsets):
                self._on_refusal(
                    ConsumerGroupError(
                        f"the offsets of group {group} cannot be kept at {self._bootstrap}: {refusal}; is the "
                        "broker up, and nobody consuming under that name?"
                    )
                )
        for consumer in consumers.values():
            consumer.close()

    def _take_next_pending(self) -> tuple[str, OffsetsByPartition] | None:
        """Wait for a group whose offsets are to be kept; None once there is to be an end."""
        with self._condition:
            self._is_committing = False
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._pending or self._is_closed)
            if self._is_closed:
                return None
            self._is_committing = True
            group = next(iter(self._pending))
            return group, self._pending.pop(group)

    def _create_consumer(self, group: str) -> Consumer:
        """A consumer that consumes nothing, and commits for its group."""
        timeout_ms = round(self._timeout_s * 1000)
        default_settings = {
            "log_level": 0,
            "enable.auto.commit": False,
            "session.timeout.ms": timeout_ms,
            "socket.timeout.ms": timeout_ms,
        }
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                **default_settings,
                **self._client_settings,
            }
        )


def _commit_offsets(consumer: Consumer, offsets: OffsetsByPartition) -> str | None:
    """Commit, and return why offsets were not taken, as a whole or for one of their partitions."""
    partition_offsets = [
        TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()
    ]
    try:
        committed = consumer.commit(offsets=partition_offsets, asynchronous=False)
    except KafkaException as error:
        return describe_kafka_error(error)
    return next(
        (
            partition_result.error.str()
            for partition_result in committed or []
            if partition_result.error is not None
        ),
        None,
    )
