"""Records that are held in memory, as topics have them: for what is small, and read batch by batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.spark.stored.pieces import within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


@dataclass(frozen=True)
class Held:
    """The records of one or several topics."""

    rows: "DataFrame"
    ends: tuple[Range, ...]

    def ranges(self) -> tuple[Range, ...]:
        """Return all of them."""
        return self.ends

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """Return the records of these ranges."""
        topics = sorted({span.topic for span in ranges})
        parts = (
            within(self.rows.where(f"topic = '{topic}'"), [span for span in ranges if span.topic == topic])
            for topic in topics
        )
        return reduce(lambda one, other: one.unionAll(other), parts, self.rows.where("false"))


def held_records(session: "SparkSession", topics: Mapping[str, Sequence[bytes]]) -> Held:
    """Hold records of topics, each in one partition, in their order."""
    rows = [
        (None, value, topic, 0, offset, None)
        for topic, values in topics.items()
        for offset, value in enumerate(values)
    ]
    ends = tuple(Range(topic, 0, 0, len(values)) for topic, values in topics.items())
    return Held(session.createDataFrame(rows, SCHEMA), ends)
