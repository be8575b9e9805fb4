"""Reads files as a topic: each file is a partition, each row an offset, and each row's value is JSON.

So rows are treated like records of a topic: they are checked, counted, quarantined byte for byte, and found again
by their address.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.bounded_sources.range_slicing import filter_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_COLUMNS = {"_file": "_metadata.file_path", "_begin": "_metadata.file_block_start"}
ROW_NUMBER_SQL = "monotonically_increasing_id()"
"""Numbers the rows of a task, block by block. The files alone determine which task reads which block."""


class FileBlock(NamedTuple):
    """A block of a file, by its first byte, with the numbers that Spark gives its rows."""

    file: str
    start_byte: int
    first_row: int
    row_count: int


@dataclass(frozen=True)
class FileSource:
    """The rows of files. `value_sql` turns a row into the bytes of a record."""

    rows: "DataFrame"
    source: PlanSource
    value_sql: str

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return every file as a partition, ordered by name."""
        counts = self._block_offsets.group_by("_number").aggregate([("_rows", "sum")]).sort_by("_number")
        numbers, rows = (counts.column(name).to_pylist() for name in ("_number", "_rows_sum"))
        return tuple(
            OffsetRange(self.source.name, number, 0, count)
            for number, count in zip(numbers, rows, strict=True)
        )

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the rows of these ranges, with the columns of Spark's Kafka source."""
        from pyspark.sql.functions import broadcast

        numbered_rows = self.rows.selectExpr(
            f"{self.value_sql} AS value",
            *(f"{sql} AS {name}" for name, sql in BLOCK_COLUMNS.items()),
            f"{ROW_NUMBER_SQL} AS _row",
        )
        block_offsets = self.rows.sparkSession.createDataFrame(self._block_offsets.drop_columns(["_rows"]))
        addressed = numbered_rows.join(broadcast(block_offsets), list(BLOCK_COLUMNS)).selectExpr(
            "cast(NULL AS BINARY) AS key",
            "cast(value AS BINARY) AS value",
            f"'{self.source.name}' AS topic",
            "_number AS partition",
            "_row + _shift AS offset",
            "cast(NULL AS TIMESTAMP) AS timestamp",
        )
        return addressed if tuple(ranges) == self.list_ranges() else filter_ranges(addressed, ranges)

    @cached_property
    def _block_offsets(self) -> pa.Table:
        """The file number of each block, and the shift from Spark's row numbers to offsets."""
        return pa.Table.from_pylist(list(assign_offsets(self._scan_blocks())), schema=BLOCK_OFFSET_SCHEMA)

    def _scan_blocks(self) -> list[FileBlock]:
        """Read all files once to count the rows of each block."""
        numbered_rows = self.rows.selectExpr(
            *(f"{sql} AS {name}" for name, sql in BLOCK_COLUMNS.items()), f"{ROW_NUMBER_SQL} AS _row"
        )
        block_counts = numbered_rows.groupBy(*BLOCK_COLUMNS).agg({"_row": "min", "*": "count"})
        return sorted(
            FileBlock(*row) for row in block_counts.select(*BLOCK_COLUMNS, "min(_row)", "count(1)").collect()
        )


BLOCK_OFFSET_SCHEMA = pa.schema(
    [
        pa.field("_file", pa.string()),
        pa.field("_begin", pa.int64()),
        pa.field("_number", pa.int32()),
        pa.field("_shift", pa.int64()),
        pa.field("_rows", pa.int64()),
    ]
)


def assign_offsets(blocks: Sequence[FileBlock]) -> Iterator[Mapping[str, object]]:
    """Number files, and the rows of each file; the blocks must be sorted."""
    for file_number, (_, file_blocks) in enumerate(groupby(blocks, key=lambda block: block.file)):
        offset = 0
        for block in file_blocks:
            yield {
                "_file": block.file,
                "_begin": block.start_byte,
                "_number": file_number,
                "_shift": offset - block.first_row,
                "_rows": block.row_count,
            }
            offset += block.row_count
