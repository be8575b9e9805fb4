"""Counts the records of several topics with few requests. Reads none of them, and joins no group."""

from collections import Counter
from collections.abc import Collection, Mapping

from penstock.core.kafka_client import PLAINTEXT_CLIENT, KafkaClientSettings
from penstock.core.kafka_offsets import fetch_end_offsets, fetch_first_offsets
from penstock.ingestion.consumers.topic_contents import REQUEST_TIMEOUT_S, open_reading_consumer


def count_stored_records(
    bootstrap: str, topics: Collection[str], client_settings: KafkaClientSettings = PLAINTEXT_CLIENT
) -> Mapping[str, int]:
    """Return how many offsets each topic holds; topics that do not exist are left out.

    Raises TopicReadError if the broker does not answer.
    """
    with open_reading_consumer(bootstrap, "topics", client_settings) as consumer:
        known = consumer.list_topics(timeout=REQUEST_TIMEOUT_S).topics
        keys = [(topic, number) for topic in topics if topic in known for number in known[topic].partitions]
        first = fetch_first_offsets(consumer, keys, REQUEST_TIMEOUT_S)
        end = fetch_end_offsets(consumer, keys, REQUEST_TIMEOUT_S)
    counts = Counter({topic: 0 for topic, _ in keys})
    for key in keys:
        # The broker names no first offset of an empty partition.
        counts[key[0]] += end[key] - first.get(key, end[key])
    return counts
