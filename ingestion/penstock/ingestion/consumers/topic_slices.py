"""Reads a part of a topic: its newest records, or those from an offset or a time on. Joins no group."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer

from penstock.core.kafka_client import PLAINTEXT_CLIENT, KafkaClientSettings
from penstock.core.kafka_offsets import fetch_end_offsets, fetch_first_offsets, fetch_offsets_at
from penstock.ingestion.consumers.topic_contents import (
    REQUEST_TIMEOUT_S,
    StoredRecord,
    open_reading_consumer,
    read_partition,
)

OffsetsByPartition = Mapping[int, int]


class TopicSlices:
    """An open consumer of one topic, with the offsets that it had when it was opened."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer, self._topic = consumer, topic
        metadata = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
        found = () if metadata.error is not None else metadata.partitions
        keys = [(topic, partition) for partition in sorted(found)]
        first = fetch_first_offsets(consumer, keys, REQUEST_TIMEOUT_S)
        end = fetch_end_offsets(consumer, keys, REQUEST_TIMEOUT_S)
        self.end_offsets: OffsetsByPartition = {key[1]: end[key] for key in keys}
        # The broker names no first offset of an empty partition.
        self.first_offsets: OffsetsByPartition = {key[1]: first.get(key, end[key]) for key in keys}

    def find_offsets_at(self, at_ms: int) -> OffsetsByPartition:
        """Return the first offset of each partition at a time; the end where there is no later record."""
        keys = [(self._topic, partition) for partition in self.end_offsets]
        found = fetch_offsets_at(self._consumer, keys, at_ms, REQUEST_TIMEOUT_S)
        return {
            partition: found.get((self._topic, partition), end) for partition, end in self.end_offsets.items()
        }

    def find_newest_offsets(self, count: int) -> OffsetsByPartition:
        """Return the offsets from which each partition has so many records, or all of its records."""
        return {
            partition: max(self.first_offsets[partition], end - count)
            for partition, end in self.end_offsets.items()
        }

    def read(self, starts: OffsetsByPartition, limit: int) -> list[StoredRecord]:
        """Return at most `limit` records of each partition from its offset on, by partition and offset."""
        records: list[StoredRecord] = []
        for partition, start in sorted(starts.items()):
            first = max(start, self.first_offsets[partition])
            end = min(self.end_offsets[partition], first + limit)
            records += read_partition(self._consumer, self._topic, partition, first, end)
        return records


@contextmanager
def open_topic_slices(
    bootstrap: str, topic: str, client_settings: KafkaClientSettings = PLAINTEXT_CLIENT
) -> Iterator[TopicSlices]:
    """Open a topic for the block. A topic that does not exist has no partitions.

    Raises TopicReadError if the broker does not answer.
    """
    with open_reading_consumer(bootstrap, topic, client_settings) as consumer:
        yield TopicSlices(consumer, topic)
