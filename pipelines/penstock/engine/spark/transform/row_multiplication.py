"""Marks one row of each record after steps that may return several rows for a record, so that counts stay right.

A step that explodes a list, or maps over Arrow, may return any number of rows for a record. They are adjacent, as
a stateless step moves no row to another task. So the first row of a record is where the address changes. Spark's
plan shows whether rows can multiply: a plan that only projects and filters needs no marks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.engine.plan.steps import LookupStep, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST_ROW_COLUMN = "_first_row"
"""The column that marks one row of each record when there may be several."""

ROW_PRESERVING_OPERATORS = {"Project", "Filter", "SubqueryAlias", "View"}
"""Spark's names of operators that return at most one row for each row."""

LOOKUP_OPERATORS = ("Join", "ResolvedHint", "LogicalRDD", "LocalRelation")
"""Spark's names of the operators of a lookup: the join, and the table on its other side."""

ADDRESS_COLUMNS = ("_topic", "_partition", "_offset")


def can_multiply_rows(before: "DataFrame", after: "DataFrame", steps: Sequence[Step]) -> bool:
    """Whether steps may return several rows for a record. A lookup finds one row at most."""
    lookup_count = sum(isinstance(step, LookupStep) for step in steps)
    lookup_joins = Counter(dict.fromkeys(LOOKUP_OPERATORS, lookup_count))
    return (
        not set(_count_operators(after) - _count_operators(before) - lookup_joins) <= ROW_PRESERVING_OPERATORS
    )


def mark_first_rows(rows: "DataFrame") -> "DataFrame":
    """Add `_first_row`, which is true for one row of each record."""
    from pyspark.sql.types import BooleanType, StructField, StructType

    schema = StructType([*rows.schema.fields, StructField(FIRST_ROW_COLUMN, BooleanType())])
    return rows.mapInArrow(_mark_batches, schema)


def _count_operators(frame: "DataFrame") -> Counter[str]:
    """Count the operators of the analyzed plan by name."""
    # PySpark has no public API for the text of a plan; it can only print it.
    lines = frame._jdf.queryExecution().analyzed().toString().splitlines()  # noqa: SLF001
    return Counter(line.lstrip(" +-:|*").split(" ")[0].split("(")[0] for line in lines if line.strip())


def _mark_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    last_address: tuple[Any, ...] | None = None
    for batch in batches:
        is_first = np.ones(batch.num_rows, bool)
        if batch.num_rows:
            columns = [batch.column(name) for name in ADDRESS_COLUMNS]
            is_first[1:] = np.logical_or.reduce([_differs_from_previous(column) for column in columns])
            is_first[0] = tuple(column[0].as_py() for column in columns) != last_address
            last_address = tuple(column[-1].as_py() for column in columns)
        yield batch.append_column(FIRST_ROW_COLUMN, pa.array(is_first))


def _differs_from_previous(column: pa.Array) -> np.ndarray:
    values = column.dictionary_encode().indices if pa.types.is_string(column.type) else column
    numbers = np.asarray(values)
    return np.asarray(numbers[1:] != numbers[:-1])
