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

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.plan.source import Source
from penstock.pipelines.spark.stored.pieces import within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK = {"_file": "_metadata.file_path", "_begin": "_metadata.file_block_start"}
ROW = "monotonically_increasing_id()"
"""Counts the rows of a task, each block's one after the other; which task reads what follows from the files."""


class Block(NamedTuple):
    """A stretch of a file, by where it begins, and the numbers that its rows have while they are read."""

    file: str
    begin: int
    first: int
    rows: int


@dataclass(frozen=True)
class StoredFiles:
    """Rows of files. `value` is the SQL that makes a row the bytes of a record."""

    rows: "DataFrame"
    source: Source
    value: str

    def ranges(self) -> tuple[Range, ...]:
        """Every file as a partition, in the order of their names."""
        counts = self._places.group_by("_number").aggregate([("_rows", "sum")]).sort_by("_number")
        numbers, rows = (counts.column(name).to_pylist() for name in ("_number", "_rows_sum"))
        return tuple(Range(self.source.name, n, 0, count) for n, count in zip(numbers, rows, strict=True))

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The rows of these ranges as a topic would hold them."""
        from pyspark.sql.functions import broadcast

        read = self.rows.selectExpr(
            f"{self.value} AS value", *(f"{sql} AS {name}" for name, sql in BLOCK.items()), f"{ROW} AS _row"
        )
        places = self.rows.sparkSession.createDataFrame(self._places.drop_columns(["_rows"]))
        placed = read.join(broadcast(places), list(BLOCK)).selectExpr(
            "cast(NULL AS BINARY) AS key",
            "cast(value AS BINARY) AS value",
            f"'{self.source.name}' AS topic",
            "_number AS partition",
            "_row + _shift AS offset",
            "cast(NULL AS TIMESTAMP) AS timestamp",
        )
        return placed if tuple(ranges) == self.ranges() else within(placed, ranges)

    @cached_property
    def _places(self) -> pa.Table:
        """For each block its file's number, and what is to be added to a row's number to make it an offset."""
        return pa.Table.from_pylist(list(placed(self._blocks())), schema=PLACES)

    def _blocks(self) -> list[Block]:
        """Read all files once, for how many rows each block has."""
        named = self.rows.selectExpr(*(f"{sql} AS {name}" for name, sql in BLOCK.items()), f"{ROW} AS _row")
        counted = named.groupBy(*BLOCK).agg({"_row": "min", "*": "count"})
        return sorted(Block(*row) for row in counted.select(*BLOCK, "min(_row)", "count(1)").collect())


PLACES = pa.schema(
    [
        pa.field("_file", pa.string()),
        pa.field("_begin", pa.int64()),
        pa.field("_number", pa.int32()),
        pa.field("_shift", pa.int64()),
        pa.field("_rows", pa.int64()),
    ]
)


def placed(blocks: Sequence[Block]) -> Iterator[Mapping[str, object]]:
    """Number files, and the rows within each; blocks are in order."""
    for number, (_, of_file) in enumerate(groupby(blocks, key=lambda block: block.file)):
        offset = 0
        for block in of_file:
            yield {
                "_file": block.file,
                "_begin": block.begin,
                "_number": number,
                "_shift": offset - block.first,
                "_rows": block.rows,
            }
            offset += block.rows
