"""Convert the panes of one stage to changes, the input of another stage. A change has the window of its pane.

An insert adds an element (weight 1), a retraction removes one (weight -1). Three kinds of panes are not
changes: an insert that restates unchanged values because the pane is on time or final; a pane without
records; and a marker that another window replaces this one, which is written where panes are not retracted.

The time of an element is the last instant of its window, so it lies in any later window that ends no earlier.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN
from penstock.engine.aggregates.restricted_columns import INPUT_COLUMN
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stateful.side_outputs import output_schema, select_output_panes
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, BoolArray

INSTANT_TYPE = pa.timestamp("ms", tz="UTC")
CHANGE_METADATA_FIELDS = (
    pa.field("_start", pa.int64()),
    pa.field("_end", pa.int64()),
    pa.field("_time", pa.int64()),
    pa.field(WEIGHT_COLUMN, pa.int64()),
    pa.field(INPUT_COLUMN, pa.string()),
)
"""Internal columns of a change: the bounds of its pane's window, its time, its weight, and the stage it comes
from.
"""


def change_schema(stage: CompiledStage) -> pa.Schema:
    """Return the columns for a stage that reads this one: key, values, window, and metadata."""
    bounds = [pa.field(name, INSTANT_TYPE) for name in ("window_start", "window_end")]
    own_columns = set(output_schema(stage).names)
    results = [field for field in stage.result_fields if field.name in own_columns]
    return pa.schema([*stage.key, *results, *bounds, *CHANGE_METADATA_FIELDS])


def panes_to_changes(stage: CompiledStage, result: StageResult) -> pa.Table:
    """Return the changes of a stage's batch."""
    schema = change_schema(stage)
    panes = select_output_panes(stage, result.panes.filter(pa.array(are_changes(result))))
    start, end = (panes.column(f"window_{bound}") for bound in ("start", "end"))
    is_insert = np.asarray(pc.equal(panes.column("kind"), "insert"))
    computed_columns = {
        "window_start": _to_instants(start),
        "window_end": _to_instants(end),
        "_start": start,
        "_end": end,
        "_time": pc.subtract(end, 1),
        WEIGHT_COLUMN: pa.array(np.where(is_insert, 1, -1)),
        INPUT_COLUMN: pa.array([stage.plan.name] * panes.num_rows, pa.string()),
    }
    return pa.table(
        [computed_columns.get(field.name, _column_or_none(panes, field.name)) for field in schema],
        schema=schema,
    )


def are_changes(result: StageResult) -> BoolArray:
    """Return which panes of a batch are changes."""
    panes = result.panes
    is_change_kind = pc.is_in(panes.column("kind"), pa.array(["insert", "retract"]))
    has_records = pc.greater(panes.column("records"), 0)
    return np.asarray(pc.and_(is_change_kind, has_records)) & ~result.is_restated


def concat_changes(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the changes of several stages. A column that a stage lacks is null."""
    return pa.concat_tables(tables, promote_options="default")


def _column_or_none(panes: pa.Table, name: str) -> pa.ChunkedArray | None:
    return panes.column(name) if name in panes.column_names else None


def _to_instants(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert milliseconds to timestamps. Unbounded times become null."""
    is_unbounded = pc.or_(pc.equal(times, MAX_TIMESTAMP_MS), pc.equal(times, MIN_TIMESTAMP_MS))
    return pc.cast(pc.if_else(is_unbounded, pa.scalar(None, pa.int64()), times), INSTANT_TYPE)
