"""Runs a lookup step in Spark: a broadcast join with the rows of a table."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.steps import LookupStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LookupRows = Callable[[LookupStep], pa.Table | None]
"""Returns the rows of a step's lookup table; None when only its columns are needed."""


def give_no_rows(step: LookupStep) -> None:
    """Return no rows: the columns that a step adds follow from the step alone."""
    del step


def join_lookup(records: "DataFrame", step: LookupStep, lookup_rows: LookupRows) -> "DataFrame":
    """Add the columns of a lookup table to records; raise DefinitionError when the columns do not match."""
    record_fields = {name.lower() for name in records.columns}
    for name in step.on:
        if name.lower() not in record_fields:
            fix = f"Available fields: {', '.join(n for n in records.columns if not n.startswith('_'))}"
            raise DefinitionError("lookup.on", f"{name!r} is not a field of the records", fix)
    for column in step.columns:
        if column.name.lower() in record_fields:
            fix = "Rename the field in an earlier step, or remove the column from the lookup"
            raise DefinitionError(f"lookup.columns.{column.name}", "the records already have that field", fix)
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
