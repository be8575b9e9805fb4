"""Records that a test holds in memory, as a topic has them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC_ROW_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


def create_memory_source(session: "SparkSession", topics: Mapping[str, Sequence[bytes]]) -> InMemorySource:
    """Create a source of these records, in one partition for each topic, in the given order."""
    rows = [
        (None, value, topic, 0, offset, None)
        for topic, values in topics.items()
        for offset, value in enumerate(values)
    ]
    all_ranges = tuple(OffsetRange(topic, 0, 0, len(values)) for topic, values in topics.items())
    return InMemorySource(session.createDataFrame(rows, TOPIC_ROW_DDL), all_ranges)
