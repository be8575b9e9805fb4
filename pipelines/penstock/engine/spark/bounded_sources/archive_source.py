"""Reads the archive of a topic: a table of its records with their original addresses and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.bounded_sources.range_slicing import filter_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDRESS_COLUMN_TYPES = {"partition": "int", "offset": "bigint", "value": "binary"}
OPTIONAL_COLUMN_TYPES = {"key": "BINARY", "timestamp": "TIMESTAMP"}


def is_archive_table(rows: "DataFrame") -> bool:
    """Whether rows have the columns of an archive."""
    return dict(rows.dtypes).items() >= ADDRESS_COLUMN_TYPES.items()


@dataclass(frozen=True)
class ArchiveSource:
    """The records of a topic in its archive."""

    archive_rows: "DataFrame"
    topic: str

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return every partition from the oldest archived record to the newest."""
        from pyspark.sql.functions import max as newest
        from pyspark.sql.functions import min as oldest

        bounds = self.archive_rows.groupBy("partition").agg(oldest("offset"), newest("offset")).collect()
        return tuple(
            OffsetRange(self.topic, partition, first, last + 1) for partition, first, last in sorted(bounds)
        )

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges."""
        columns = set(self.archive_rows.columns)
        optional_columns = [
            name if name in columns else f"cast(NULL AS {column_type}) AS {name}"
            for name, column_type in OPTIONAL_COLUMN_TYPES.items()
        ]
        return filter_ranges(
            self.archive_rows.selectExpr(
                "value", f"'{self.topic}' AS topic", "partition", "offset", *optional_columns
            ),
            ranges,
        )
