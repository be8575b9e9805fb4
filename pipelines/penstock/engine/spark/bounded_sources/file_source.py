"""Files as a topic: each file a partition, each of its rows an offset, each row the JSON that a topic would hold.

So whatever becomes of a record of a topic becomes of a row: it is judged, counted, kept byte for byte in the
quarantine, and found again by its address.
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
"""Counts the rows of a task, each block's one after the other; which task reads what follows from the files."""


class FileBlock(NamedTuple):
    """A stretch of a file, by where it begins, and the numbers that its rows have while they are read."""

    file: str
    start_byte: int
    first_row: int
    row_count: int


@dataclass(frozen=True)
class FileSource:
    """Rows of files. `value` is the SQL that makes a row the bytes of a record."""

    rows: "DataFrame"
    source: PlanSource
    value_sql: str

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Every file as a partition, in the order of their names."""
        counts = self._block_offsets.group_by("_number").aggregate([("_rows", "sum")]).sort_by("_number")
        numbers, rows = (counts.column(name).to_pylist() for name in ("_number", "_rows_sum"))
        return tuple(
            OffsetRange(self.source.name, number, 0, count)
            for number, count in zip(numbers, rows, strict=True)
        )

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """The rows of these ranges as a topic would hold them."""
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
        """For each block its file's number, and what is to be added to a row's number to make it an offset."""
        return pa.Table.from_pylist(list(assign_offsets(self._scan_blocks())), schema=BLOCK_OFFSET_SCHEMA)

    def _scan_blocks(self) -> list[FileBlock]:
        """Read all files once, for how many rows each block has."""
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
    """Number files, and the rows within each; blocks are in order."""
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
