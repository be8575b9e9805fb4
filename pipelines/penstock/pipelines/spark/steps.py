"""Stateless steps of the user's own, between a good record and its windows."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.rowwise import mapped
from penstock.pipelines.plan.predicates import literal, predicate_sql, quoted
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.steps import Apply, Keep, Lookup, OverArrow, PerRow, Sql, Step
from penstock.pipelines.spark.inputs import Sources, columns_of
from penstock.pipelines.spark.lookups import Found, looked_up, without_rows
from penstock.pipelines.spark.multiplying import may_multiply, told_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stepped(records: "DataFrame", stage: Stage, sources: Sources, found: Found = without_rows) -> "DataFrame":
    """The good records that a stage reads, after its steps; `sources` are all that were read.

    `found` gives the rows of a table that a step looks into; without it there are none, and only columns. Where a
    step may have made several rows of a record, one of them is marked by `_first_row`.
    """
    good = records.where("_aside IS NULL")
    ours = [source for source in sources if source.name in stage.inputs]
    if len(ours) < len(sources):
        topics = ", ".join(literal(topic_of(source)) for source in ours)
        fields = [*(name for name in good.columns if name.startswith("_")), *columns_of(ours)]
        good = good.where(f"_topic IN ({topics})").select(*(quoted(name) for name in fields))
    united, several = _united(good, stage, ours, found) if stage.prepared else (good, False)
    after = applied(united, stage.steps, found)
    several = several or (bool(stage.steps) and may_multiply(united, after, stage.steps))
    return told_apart(after) if several else after


def _united(good: "DataFrame", stage: Stage, sources: Sources, found: Found) -> "tuple[DataFrame, bool]":
    """The records of several inputs, each after its own steps, and whether these may have multiplied any."""
    pieces = []
    several = False
    for source in sources:
        before = good.where(f"_topic = {literal(topic_of(source))}")
        steps = stage.steps_of(source.name)
        after = applied(before, steps, found)
        several = several or may_multiply(before, after, steps)
        pieces.append(after)
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), pieces), several


def applied(records: "DataFrame", steps: Sequence[Step], found: Found) -> "DataFrame":
    """Records after all steps. Raises DefinitionError where a step lost a column that is ours."""
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


def _applied(records: "DataFrame", step: Apply | Sql | OverArrow | Keep | PerRow) -> "DataFrame":
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
        case Keep(condition):
            return records.where(predicate_sql(condition))
        case PerRow():
            return _over_arrow(records, partial(mapped, step))


def _over_arrow(records: "DataFrame", function: Callable[[pa.Table], pa.Table]) -> "DataFrame":
    """Map batch by batch in the executors; what columns come of it is asked with no rows."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    made = function(to_arrow_schema(records.schema, timezone="UTC").empty_table()).schema

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from function(pa.Table.from_batches([batch])).cast(made).to_batches()

    return records.mapInArrow(mapped, from_arrow_schema(made))
