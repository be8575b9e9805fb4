"""Several stored inputs as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.spark.stored import Stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


@dataclass(frozen=True)
class StoredTogether:
    """The records of all parts; a partition's name says of which part it is."""

    parts: Sequence[Stored]

    def ranges(self) -> tuple[Range, ...]:
        """The partitions of all parts, one part after the other."""
        return tuple(span for part in self.parts for span in part.ranges())

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The records of these ranges, from the part that each of them is of."""
        read = []
        for part in self.parts:
            topics = {span.topic for span in part.ranges()}
            read.append(part.records([span for span in ranges if span.topic in topics]).select(*COLUMNS))
        return reduce(lambda one, other: one.unionAll(other), read)
