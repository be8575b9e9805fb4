"""Records that are there already: a topic as far as it goes now, or files; read in pieces by address."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.engine.batch.intent import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BoundedSource(Protocol):
    """A bounded input. Asked again while nothing is added to it, it answers the same."""

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Every partition, and the offsets that it has."""

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """The records of these ranges, as Spark's Kafka source would show them."""
