"""Commits the offsets of readers that store their positions elsewhere, so that Kafka tools can show their lag.

Offsets are committed by consumers with manual assignment. The admin client could set them too, but it aborts the
whole process if its broker goes away during such a request; see core.kafka_client.
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
    """Commits the offsets of consumer groups without members, such as one for each stream of a host.

    `report` does not wait: a thread commits the newest offsets of one group after the other. The offsets are for
    monitoring; no reader starts from them, and delivery is not guaranteed. Kafka refuses a commit while a member
    has joined the group; refusals are passed to `on_refusal`. Thread-safe.
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
        self._thread = threading.Thread(
            target=self._run_commit_loop, name="group-offset-committer", daemon=True
        )
        self._thread.start()

    def report(self, group: str, offsets: OffsetsByPartition) -> None:
        """Report the next offset of a group for each topic and partition."""
        if offsets:
            with self._condition:
                self._pending.setdefault(group, {}).update(offsets)
                self._condition.notify_all()

    def wait_until_committed(self, timeout_s: float) -> bool:
        """Wait until all reported offsets are committed; return whether that succeeded before the timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._pending and not self._is_committing, timeout_s)

    def close(self, timeout_s: float) -> None:
        """Commit the reported offsets if the broker answers before the timeout, then stop the thread."""
        self.wait_until_committed(timeout_s)
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def read_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a group."""
        request = [ConsumerGroupTopicPartitions(group)]
        try:
            admin = create_admin_client(self._bootstrap, self._client_settings)
            futures = admin.list_consumer_group_offsets(request, request_timeout=self._timeout_s)
            partitions = futures[group].result(self._timeout_s * 2).topic_partitions or []
        except KafkaException as error:
            raise ConsumerGroupError(
                f"Cannot read the offsets of group {group} at {self._bootstrap}: {describe_kafka_error(error)}. "
                "Check that the broker is up."
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
                        f"Cannot commit the offsets of group {group} at {self._bootstrap}: {refusal}. "
                        "Check that the broker is up and that no consumer uses this group."
                    )
                )
        for consumer in consumers.values():
            consumer.close()

    def _take_next_pending(self) -> tuple[str, OffsetsByPartition] | None:
        """Wait for a group with offsets to commit; return None after `close`."""
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
        """Return a consumer that only commits offsets for its group."""
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
    """Commit offsets; return the error of the request or of the first refused partition, if any."""
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
