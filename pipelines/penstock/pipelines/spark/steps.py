"""Stateless steps of the user's own, between a good record and its windows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.rowwise import mapped
from penstock.pipelines.plan.predicates import literal, predicate_sql, quoted
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.steps import Apply, Keep, Lookup, OverArrow, PerRow, Select, Sql, Step
from penstock.pipelines.plan.used import left_out, refuse_two_types
from penstock.pipelines.spark.inputs import Sources, as_its_own, as_one, disputed
from penstock.pipelines.spark.lookups import Found, looked_up, without_rows
from penstock.pipelines.spark.multiplying import may_multiply, told_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INPUT = Lock()
"""Held while `input` is what one step reads."""


def stepped(records: "DataFrame", stage: Stage, sources: Sources, found: Found = without_rows) -> "DataFrame":
    """The good records that a stage reads, after its steps; `sources` are all that were read.

    `found` gives the rows of a table that a step looks into; without it there are none, and only columns. Where a
    step may have made several rows of a record, one of them is marked by `_first_row`.
    """
    good = records.where("_aside IS NULL")
    united, several = _united(good, stage, sources, found)
    after = applied(united, stage.steps, found)
    several = several or (bool(stage.steps) and may_multiply(united, after, stage.steps))
    return told_apart(after) if several else after


def needs_steps(stage: Stage, sources: Sources) -> bool:
    """Whether what a stage reads is another thing than the records as they were judged."""
    return bool(stage.steps or stage.prepared or disputed(sources))


def _united(good: "DataFrame", stage: Stage, sources: Sources, found: Found) -> "tuple[DataFrame, bool]":
    """The records of a stage's inputs, each after its own steps, and whether these may have multiplied any."""
    ours = [source for source in sources if source.name in stage.inputs]
    if not stage.prepared:
        if len(ours) == len(sources) and not disputed(sources):
            return good, False
        topics = ", ".join(literal(topic_of(source)) for source in ours)
        return as_one(good.where(f"_topic IN ({topics})"), stage, ours, sources), False
    pieces: dict[str, DataFrame] = {}
    several = False
    for source in ours:
        before = as_its_own(good.where(f"_topic = {literal(topic_of(source))}"), source, sources)
        steps = stage.steps_of(source.name)
        pieces[source.name] = applied(before, steps, found)
        several = several or may_multiply(before, pieces[source.name], steps)
    agreed = _agreed(stage, pieces)
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), agreed), several


def _agreed(stage: Stage, pieces: "Mapping[str, DataFrame]") -> "list[DataFrame]":
    """The same records, each without the fields that are of another type elsewhere and are not used of it."""
    types = {name: dict(piece.dtypes) for name, piece in pieces.items()}
    refuse_two_types(stage, types)
    without = left_out(stage, types)
    return [piece.drop(*without[name]) for name, piece in pieces.items()]


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


def _applied(records: "DataFrame", step: Apply | Sql | OverArrow | Keep | Select | PerRow) -> "DataFrame":
    match step:
        case Apply(function):
            changed: DataFrame = function.resolve()(records)
            return changed
        case Sql(text):
            # Streams that are made ready at the same time share a session, and its view; what it was is settled
            # when this returns.
            with _INPUT:
                records.createOrReplaceTempView("input")
                return records.sparkSession.sql(text)
        case OverArrow(function):
            return _over_arrow(records, function.resolve())
        case Keep(condition):
            return records.where(predicate_sql(condition))
        case Select(columns):
            ours = [quoted(name) for name in records.columns if name.startswith("_")]
            return records.selectExpr(*ours, *(f"{quoted(old)} AS {quoted(new)}" for new, old in columns))
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
