"""Holds the records of topics in memory, for small inputs that are read batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.bounded_sources.range_slicing import filter_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
