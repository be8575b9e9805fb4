"""Bounded inputs: a topic up to its current end, its archive, or files; read by ranges of offsets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.engine.batch.intent import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BoundedSource(Protocol):
    """A bounded input. It returns the same ranges and records each time, unless records are added to it."""

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return the range of offsets of every partition."""

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges, with the columns of Spark's Kafka source."""
