"""Stateless steps of the user's own, between a good record and its windows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.steps import Apply, Sql, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def applied(records: "DataFrame", steps: Sequence[Step]) -> "DataFrame":
    """Records after all steps. Raises DefinitionError where a step lost a column that is ours."""
    for number, step in enumerate(steps, start=1):
        ours = [name for name in records.columns if name.startswith("_")]
        records = _applied(records, step)
        lost = [name for name in ours if name not in records.columns]
        if lost:
            raise DefinitionError(
                f"step {number}",
                f"it drops {', '.join(lost)}, by which a record is found again",
                "Keep the columns that begin with _, as withColumn, where and SELECT * do",
            )
    return records


def _applied(records: "DataFrame", step: Step) -> "DataFrame":
    match step:
        case Apply(function):
            changed: DataFrame = function.resolve()(records)
            return changed
        case Sql(text):
            # The view belongs to the session of this one query: streams do not see each other's.
            records.createOrReplaceTempView("input")
            return records.sparkSession.sql(text)
