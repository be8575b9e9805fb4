"""Holds the records of topics in memory, for small inputs that are read batch by batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.bounded_sources.range_slicing import filter_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC_ROW_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


@dataclass(frozen=True)
class InMemorySource:
    """The records of one or several topics, in memory."""

    rows: "DataFrame"
    all_ranges: tuple[OffsetRange, ...]

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return the ranges of all records."""
        return self.all_ranges

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges."""
        topics = sorted({span.topic for span in ranges})
        parts = (
            filter_ranges(
                self.rows.where(f"topic = '{topic}'"), [span for span in ranges if span.topic == topic]
            )
            for topic in topics
        )
        return reduce(lambda union, other: union.unionAll(other), parts, self.rows.where("false"))


def create_memory_source(session: "SparkSession", topics: Mapping[str, Sequence[bytes]]) -> InMemorySource:
    """Create a source of these records, in one partition for each topic, in the given order."""
    rows = [
        (None, value, topic, 0, offset, None)
        for topic, values in topics.items()
        for offset, value in enumerate(values)
    ]
    all_ranges = tuple(OffsetRange(topic, 0, 0, len(values)) for topic, values in topics.items())
    return InMemorySource(session.createDataFrame(rows, TOPIC_ROW_DDL), all_ranges)
