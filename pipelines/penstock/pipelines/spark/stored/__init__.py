"""Records that are there already: a topic as far as it goes now, or files; read in pieces by address."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.pipelines.batch.intent import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Stored(Protocol):
    """A bounded input. Asked again while nothing is added to it, it answers the same."""

    def ranges(self) -> tuple[Range, ...]:
        """Every partition, and the offsets that it has."""

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The records of these ranges, as Spark's Kafka source would show them."""
