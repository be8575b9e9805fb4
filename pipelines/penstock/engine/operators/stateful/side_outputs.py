"""Side outputs: rows of a function routed to several outputs, each with its own columns."""

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
    """Return the pane columns of one output, or of the main output if no name is given."""
    window = stage.plan.window
    if not isinstance(window, StatefulFunction) or not window.outputs:
        return stage.pane_schema
    other_columns = {column.name for column in window.columns} - window.output_column_names(output)
    return pa.schema([field for field in stage.pane_schema if field.name not in other_columns])


def select_output_panes(stage: CompiledStage, panes: pa.Table, output: str | None = None) -> pa.Table:
    """Return the panes of one output, with its columns."""
    names = output_schema(stage, output).names
    if len(names) == len(stage.pane_schema):
        return panes
    pane_output = panes.column(SIDE_OUTPUT_COLUMN)
    return panes.filter(pc.is_null(pane_output) if output is None else pc.equal(pane_output, output)).select(
        names
    )


def route_rows(window: StatefulFunction, rows: Sequence[OutputRow]) -> list[Mapping[str, Any]]:
    """Return the fields of rows, with the output that each goes to."""
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
    """Return the rows of a vectorized function, with an internal column for the output that each goes to."""
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
    """Set the columns of other outputs to null."""
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
    """Return the error text for a row with an unknown output."""
    declared = ", ".join(declared_output.name for declared_output in window.outputs) or "none"
    return f"it sent a row to the unknown output {output!r}; declared outputs: {declared}"
