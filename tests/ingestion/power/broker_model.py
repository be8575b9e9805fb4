"""A broker in memory, behind the clients that a producer uses. It tells which records it had at any time.

Records of a partition arrive in the order of sending, at a random time. A record that was not sent when the
producer was killed never arrives.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

from confluent_kafka import TopicPartition

from penstock.core.kafka_topics import TopicIds
from penstock.ingestion.producer import ledgered_producer, readback

SLOW_POLLS = 0.6
"""The share of polls in which nothing arrives, so that several batches are acknowledged together."""
PartitionKey = tuple[str, int]
ReportCallback = Callable[[None, "StoredRecord"], None]


@dataclass(frozen=True)
class StoredRecord:
    """A record in a topic; it has the methods of a message of the client library."""

    position: int
    record_key: bytes | None
    record_value: bytes
    record_headers: Sequence[tuple[str, bytes]]
    arrived_at: int

    def offset(self) -> int:
        return self.position

    def key(self) -> bytes | None:
        return self.record_key

    def value(self) -> bytes:
        return self.record_value

    def headers(self) -> list[tuple[str, bytes]]:
        return list(self.record_headers)

    def error(self) -> None:
        return None


@dataclass
class BrokerModel:
    """The partitions of a cluster. `read_time` counts what happened elsewhere, to date the arrival of records."""

    topics: Mapping[str, int]
    random_source: random.Random
    read_time: Callable[[], int] = lambda: 0
    partitions: dict[PartitionKey, list[StoredRecord]] = field(default_factory=lambda: defaultdict(list))

    def append(self, partition: PartitionKey, key: bytes | None, value: bytes, headers: Any) -> StoredRecord:
        records = self.partitions[partition]
        records.append(StoredRecord(len(records), key, value, headers, self.read_time()))
        return records[-1]

    def copy_until(self, time: int, random_source: random.Random) -> "BrokerModel":
        """Return the broker at a time: records that arrived before it, and of those at that time the first few."""
        copy = BrokerModel(self.topics, random_source)
        for partition, records in self.partitions.items():
            certain = sum(record.arrived_at < time for record in records)
            possible = sum(record.arrived_at <= time for record in records)
            copy.partitions[partition] = records[: random_source.randint(certain, possible)]
        return copy

    @contextmanager
    def replacing_kafka(self) -> Iterator[None]:
        """Let producers of the block use this broker."""
        ids = TopicIds("model", {topic: f"id of {topic}" for topic in self.topics})
        with ExitStack() as patches:
            for name, replacement in {
                "create_producer": lambda *_: ModelProducer(self),
                "create_reader": lambda *_: ModelReader(self),
                "read_topic_ids": lambda *_: ids,
            }.items():
                patches.enter_context(mock.patch.object(ledgered_producer, name, replacement))
            patches.enter_context(mock.patch.object(readback, "SETTLE_POLLS", 1))
            yield


@dataclass
class ModelProducer:
    """Sends with each poll some of the queued records, and reports some of those that arrived."""

    broker: BrokerModel
    queues: dict[PartitionKey, deque[tuple[Any, ...]]] = field(default_factory=dict)
    reports: deque[tuple[ReportCallback, StoredRecord]] = field(default_factory=deque)

    def produce(
        self, topic: str, value: bytes, key: bytes | None, partition: int, *, on_delivery: Any, headers: Any
    ) -> None:
        encoded = [(name, text if isinstance(text, bytes) else text.encode()) for name, text in headers]
        self.queues.setdefault((topic, partition), deque()).append((key, value, encoded, on_delivery))

    def produce_batch(self, topic: str, messages: Sequence[dict[str, Any]], partition: int) -> int:
        for message in messages:
            record = (message["key"], message["value"], (), message.get("callback"))
            self.queues.setdefault((topic, partition), deque()).append(record)
        return len(messages)

    def poll(self, _timeout_s: float) -> int:
        random_source = self.broker.random_source
        if random_source.random() < SLOW_POLLS:
            return 0
        for partition, queue in self.queues.items():
            for _ in range(random_source.randint(0, len(queue))):
                key, value, headers, callback = queue.popleft()
                record = self.broker.append(partition, key, value, headers)
                if callback is not None:
                    self.reports.append((callback, record))
        for _ in range(random_source.randint(0, len(self.reports))):
            callback, record = self.reports.popleft()
            callback(None, record)
        return 0

    def purge(self) -> None:
        self.queues.clear()


@dataclass
class ModelReader:
    """Reads one partition from an offset."""

    broker: BrokerModel
    assigned: TopicPartition | None = None

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert timeout > 0
        partitions = dict.fromkeys(range(self.broker.topics[topic]))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        return 0, len(self.broker.partitions[partition.topic, partition.partition])

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        (self.assigned,) = partitions

    def consume(self, _count: int, timeout: float) -> list[StoredRecord]:
        assert timeout > 0
        assert self.assigned is not None
        return self.broker.partitions[self.assigned.topic, self.assigned.partition][self.assigned.offset :]

    def poll(self, _timeout_s: float) -> None:
        return None

    def unassign(self) -> None:
        self.assigned = None

    def close(self) -> None:
        self.assigned = None
