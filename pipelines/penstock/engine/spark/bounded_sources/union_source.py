"""Combines several bounded sources into one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.bounded_sources import BoundedSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC_ROW_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


@dataclass(frozen=True)
class UnionSource:
    """The records of several sources of different topics."""

    sources: Sequence[BoundedSource]

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return the partitions of all sources, in the order of the sources."""
        return tuple(span for source in self.sources for span in source.list_ranges())

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges, each from the source of its topic."""
        frames = []
        for source in self.sources:
            topics = {span.topic for span in source.list_ranges()}
            frames.append(
                source.read_records([span for span in ranges if span.topic in topics]).select(
                    *TOPIC_ROW_COLUMNS
                )
            )
        return reduce(lambda union, other: union.unionAll(other), frames)
