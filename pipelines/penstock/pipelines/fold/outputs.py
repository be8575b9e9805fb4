"""The rows of a function that sends them to several places: each has the columns of its own output alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.errors import RememberingError
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.remembering import OUTPUT, Remembering
from penstock.pipelines.remembering import Row
from penstock.pipelines.vectorised import TO


def columns_of(stage: ReadyStage, output: str | None = None) -> pa.Schema:
    """The columns of the panes of one output; without a name, of the stage's own."""
    window = stage.plan.window
    if not isinstance(window, Remembering) or not window.outputs:
        return stage.pane_columns
    others = {column.name for column in window.columns} - window.names_of(output)
    return pa.schema([field for field in stage.pane_columns if field.name not in others])


def panes_of(stage: ReadyStage, panes: pa.Table, output: str | None = None) -> pa.Table:
    """The panes of one output, with its columns."""
    names = columns_of(stage, output).names
    if len(names) == len(stage.pane_columns):
        return panes
    to = panes.column(OUTPUT)
    return panes.filter(pc.is_null(to) if output is None else pc.equal(to, output)).select(names)


def sent(window: Remembering, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """The fields of rows, with the output that each goes to."""
    for row in rows:
        if row.to is not None and not window.sends_to(row.to):
            raise RememberingError(window.function.name, unknown(window, row.to))
    if not window.outputs:
        return [row.fields for row in rows]
    names = {to: window.names_of(to) for to in {row.to for row in rows}}
    return [{OUTPUT: row.to, **{name: row.fields.get(name) for name in names[row.to]}} for row in rows]


def all_sent(window: Remembering, rows: pa.Table) -> pa.Table:
    """The rows of a vectorised function, with the output that each goes to in a column of ours."""
    to = (
        rows.column(TO).cast(pa.string()) if TO in rows.column_names else pa.nulls(rows.num_rows, pa.string())
    )
    for name in pc.unique(to).to_pylist():
        if not window.sends_to(name):
            raise RememberingError(window.function.name, unknown(window, name))
    rows = rows.drop_columns([TO]) if TO in rows.column_names else rows
    return rows.append_column(OUTPUT, to) if window.outputs else rows


def own_columns(window: Remembering, values: pa.Table) -> pa.Table:
    """The values of rows with nulls in the columns that are of other outputs."""
    for column in window.columns[:-1] if window.outputs else ():
        places = (None, *(output.name for output in window.outputs))
        having = [place for place in places if column.name in window.names_of(place)]
        theirs = pc.is_in(values.column(OUTPUT), pa.array(having, pa.string()))
        found = values.column(column.name)
        at = values.schema.get_field_index(column.name)
        values = values.set_column(at, column.name, pc.if_else(theirs, found, pa.scalar(None, found.type)))
    return values


def unknown(window: Remembering, output: str | None) -> str:
    """What is wrong with a row that goes nowhere."""
    known = ", ".join(each.name for each in window.outputs) or "no output beside its own rows"
    return f"it sent a row to {output!r}; declared is {known}"
