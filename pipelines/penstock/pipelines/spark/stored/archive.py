"""The archive of a topic: a table of its records, which keep the addresses and the bytes that they had there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.spark.stored.pieces import within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDRESSED = {"partition": "int", "offset": "bigint", "value": "binary"}


def is_archive(rows: "DataFrame") -> bool:
    """Whether rows are records with their addresses."""
    return dict(rows.dtypes).items() >= ADDRESSED.items()


@dataclass(frozen=True)
class StoredArchive:
    """The records of a topic in its archive."""

    rows: "DataFrame"
    topic: str

    def ranges(self) -> tuple[Range, ...]:
        """Every partition from the oldest record that is kept to the newest."""
        from pyspark.sql.functions import max as newest
        from pyspark.sql.functions import min as oldest

        found = self.rows.groupBy("partition").agg(oldest("offset"), newest("offset")).collect()
        return tuple(Range(self.topic, number, first, last + 1) for number, first, last in sorted(found))

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The records of these ranges."""
        known = set(self.rows.columns)
        kept = [name if name in known else f"cast(NULL AS {kind}) AS {name}" for name, kind in OTHERS.items()]
        return within(
            self.rows.selectExpr("value", f"'{self.topic}' AS topic", "partition", "offset", *kept), ranges
        )


OTHERS = {"key": "BINARY", "timestamp": "TIMESTAMP"}
