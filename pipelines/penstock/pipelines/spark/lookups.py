"""A step that looks into a table, in Spark: a join with rows that are sent along with the batch."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.steps import Lookup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Found = Callable[[Lookup], pa.Table | None]
"""Gives the rows of a table that a step looks into; None where only its columns are asked for."""


def without_rows(step: Lookup) -> None:
    """Give no rows: what a step adds is known without them."""
    del step


def looked_up(records: "DataFrame", step: Lookup, found: Found) -> "DataFrame":
    """Records with the columns of a table. DefinitionError where they do not fit the records."""
    known = {name.lower() for name in records.columns}
    for name in step.on:
        if name.lower() not in known:
            fix = f"There are: {', '.join(n for n in records.columns if not n.startswith('_'))}"
            raise DefinitionError("lookup.on", f"{name!r} is no field of a record here", fix)
    for column in step.columns:
        if column.name.lower() in known:
            fix = "Rename it in a step before, or leave it out"
            raise DefinitionError(f"lookup.columns.{column.name}", "a record has a field of that name", fix)
    rows = found(step)
    if rows is None:
        wanted = [f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in step.columns]
        return records.selectExpr("*", *wanted)
    ours = {name: f"_looked_up_{name}" for name in step.on}
    rows = rows.rename_columns([ours.get(name, name) for name in rows.column_names])
    other = records.sparkSession.createDataFrame(rows)
    same = [records[name] == other[mine] for name, mine in ours.items()]
    return records.join(other.hint("broadcast"), same, "left").drop(*ours.values())
