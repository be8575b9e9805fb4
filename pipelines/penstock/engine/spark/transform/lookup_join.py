"""A step that looks into a table, in Spark: a join with rows that are sent along with the batch."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.steps import LookupStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LookupRows = Callable[[LookupStep], pa.Table | None]
"""Gives the rows of a table that a step looks into; None where only its columns are asked for."""


def give_no_rows(step: LookupStep) -> None:
    """Give no rows: what a step adds is known without them."""
    del step


def join_lookup(records: "DataFrame", step: LookupStep, lookup_rows: LookupRows) -> "DataFrame":
    """Records with the columns of a table. DefinitionError where they do not fit the records."""
    record_fields = {name.lower() for name in records.columns}
    for name in step.on:
        if name.lower() not in record_fields:
            fix = f"There are: {', '.join(n for n in records.columns if not n.startswith('_'))}"
            raise DefinitionError("lookup.on", f"{name!r} is no field of a record here", fix)
    for column in step.columns:
        if column.name.lower() in record_fields:
            fix = "Rename it in a step before, or leave it out"
            raise DefinitionError(f"lookup.columns.{column.name}", "a record has a field of that name", fix)
    rows = lookup_rows(step)
    if rows is None:
        null_columns = [f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in step.columns]
        return records.selectExpr("*", *null_columns)
    join_columns = {name: f"_looked_up_{name}" for name in step.on}
    rows = rows.rename_columns([join_columns.get(name, name) for name in rows.column_names])
    table_frame = records.sparkSession.createDataFrame(rows)
    join_conditions = [
        records[name] == table_frame[join_column] for name, join_column in join_columns.items()
    ]
    return records.join(table_frame.hint("broadcast"), join_conditions, "left").drop(*join_columns.values())
