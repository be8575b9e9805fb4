"""Stateless steps of the user's own, between a good record and its windows."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.steps import Apply, Lookup, OverArrow, Sql, Step
from penstock.pipelines.spark.lookups import Found, looked_up, without_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def applied(records: "DataFrame", steps: Sequence[Step], found: Found = without_rows) -> "DataFrame":
    """Records after all steps. Raises DefinitionError where a step lost a column that is ours.

    `found` gives the rows of a table that a step looks into; without it there are none, and only columns.
    """
    for number, step in enumerate(steps, start=1):
        ours = [name for name in records.columns if name.startswith("_")]
        records = looked_up(records, step, found) if isinstance(step, Lookup) else _applied(records, step)
        lost = [name for name in ours if name not in records.columns]
        if lost:
            raise DefinitionError(
                f"step {number}",
                f"it drops {', '.join(lost)}, by which a record is found again",
                "Keep the columns that begin with _, as withColumn, where and SELECT * do",
            )
    return records


def _applied(records: "DataFrame", step: Apply | Sql | OverArrow) -> "DataFrame":
    match step:
        case Apply(function):
            changed: DataFrame = function.resolve()(records)
            return changed
        case Sql(text):
            # The view belongs to the session of this one query: streams do not see each other's.
            records.createOrReplaceTempView("input")
            return records.sparkSession.sql(text)
        case OverArrow(function):
            return _over_arrow(records, function.resolve())


def _over_arrow(records: "DataFrame", function: Callable[[pa.Table], pa.Table]) -> "DataFrame":
    """Map batch by batch in the executors; what columns come of it is asked with no rows."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    made = function(to_arrow_schema(records.schema, timezone="UTC").empty_table()).schema

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from function(pa.Table.from_batches([batch])).cast(made).to_batches()

    return records.mapInArrow(mapped, from_arrow_schema(made))
