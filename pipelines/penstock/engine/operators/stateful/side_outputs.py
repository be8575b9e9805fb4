"""The rows of a function that sends them to several places: each has the columns of its own output alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.errors import StatefulFunctionError
from penstock.engine.functions.stateful import OutputRow
from penstock.engine.functions.vectorized import ROW_OUTPUT_COLUMN
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.plan.stateful_function import SIDE_OUTPUT_COLUMN, StatefulFunction


def output_schema(stage: CompiledStage, output: str | None = None) -> pa.Schema:
    """The columns of the panes of one output; without a name, of the stage's own."""
    window = stage.plan.window
    if not isinstance(window, StatefulFunction) or not window.outputs:
        return stage.pane_schema
    other_columns = {column.name for column in window.columns} - window.output_column_names(output)
    return pa.schema([field for field in stage.pane_schema if field.name not in other_columns])


def select_output_panes(stage: CompiledStage, panes: pa.Table, output: str | None = None) -> pa.Table:
    """The panes of one output, with its columns."""
    names = output_schema(stage, output).names
    if len(names) == len(stage.pane_schema):
        return panes
    pane_output = panes.column(SIDE_OUTPUT_COLUMN)
    return panes.filter(pc.is_null(pane_output) if output is None else pc.equal(pane_output, output)).select(
        names
    )


def route_rows(window: StatefulFunction, rows: Sequence[OutputRow]) -> list[Mapping[str, Any]]:
    """The fields of rows, with the output that each goes to."""
    for row in rows:
        if row.output is not None and not window.has_output(row.output):
            raise StatefulFunctionError(window.function.name, describe_unknown_output(window, row.output))
    if not window.outputs:
        return [row.fields for row in rows]
    names = {
        row_output: window.output_column_names(row_output) for row_output in {row.output for row in rows}
    }
    return [
        {SIDE_OUTPUT_COLUMN: row.output, **{name: row.fields.get(name) for name in names[row.output]}}
        for row in rows
    ]


def route_table(window: StatefulFunction, rows: pa.Table) -> pa.Table:
    """The rows of a vectorized function, with the output that each goes to in a column of ours."""
    row_outputs = (
        rows.column(ROW_OUTPUT_COLUMN).cast(pa.string())
        if ROW_OUTPUT_COLUMN in rows.column_names
        else pa.nulls(rows.num_rows, pa.string())
    )
    for name in pc.unique(row_outputs).to_pylist():
        if not window.has_output(name):
            raise StatefulFunctionError(window.function.name, describe_unknown_output(window, name))
    rows = rows.drop_columns([ROW_OUTPUT_COLUMN]) if ROW_OUTPUT_COLUMN in rows.column_names else rows
    return rows.append_column(SIDE_OUTPUT_COLUMN, row_outputs) if window.outputs else rows


def null_other_columns(window: StatefulFunction, values: pa.Table) -> pa.Table:
    """The values of rows with nulls in the columns that are of other outputs."""
    for column in window.columns[:-1] if window.outputs else ():
        output_names = (None, *(output.name for output in window.outputs))
        owning_outputs = [
            output_name
            for output_name in output_names
            if column.name in window.output_column_names(output_name)
        ]
        is_owned = pc.is_in(values.column(SIDE_OUTPUT_COLUMN), pa.array(owning_outputs, pa.string()))
        column_values = values.column(column.name)
        column_index = values.schema.get_field_index(column.name)
        values = values.set_column(
            column_index,
            column.name,
            pc.if_else(is_owned, column_values, pa.scalar(None, column_values.type)),
        )
    return values


def describe_unknown_output(window: StatefulFunction, output: str | None) -> str:
    """What is wrong with a row that goes nowhere."""
    declared = (
        ", ".join(declared_output.name for declared_output in window.outputs)
        or "no output beside its own rows"
    )
    return f"it sent a row to {output!r}; declared is {declared}"
