"""Panes of one stage as what another stage reads: changes, each with the windows and the weight of its pane.

An insert brings an element, a retract takes one back. Three kinds of rows are no change: an insert that says once
more what stands, because it is on time or final; a pane without a record in it; and the mark that another window
stands for this one, which is written where nothing is taken back.

An element's time is the last instant of its window, so that it lies in any later window which ends no earlier.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.aggregates.restricted import INPUT
from penstock.pipelines.fold.aggregates.setting import WEIGHT
from penstock.pipelines.fold.outputs import columns_of, panes_of
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER, Mask

INSTANT = pa.timestamp("ms", tz="UTC")
HIDDEN = (
    pa.field("_start", pa.int64()),
    pa.field("_end", pa.int64()),
    pa.field("_time", pa.int64()),
    pa.field(WEIGHT, pa.int64()),
    pa.field(INPUT, pa.string()),
)
"""What a change has beside the columns that people see: the bounds of its pane's window, its time, its weight, and
the stage that it comes from."""


def change_columns(stage: ReadyStage) -> pa.Schema:
    """What a stage that reads this one finds: key, values, window, and what is hidden."""
    bounds = [pa.field(name, INSTANT) for name in ("window_start", "window_end")]
    own = set(columns_of(stage).names)
    results = [field for field in stage.results if field.name in own]
    return pa.schema([*stage.key, *results, *bounds, *HIDDEN])


def changes_of(stage: ReadyStage, outcome: Outcome) -> pa.Table:
    """The changes that a batch of a stage brings about."""
    schema = change_columns(stage)
    panes = panes_of(stage, outcome.panes.filter(pa.array(are_changes(outcome))))
    start, end = (panes.column(f"window_{bound}") for bound in ("start", "end"))
    inserted = np.asarray(pc.equal(panes.column("kind"), "insert"))
    ours = {
        "window_start": _instants(start),
        "window_end": _instants(end),
        "_start": start,
        "_end": end,
        "_time": pc.subtract(end, 1),
        WEIGHT: pa.array(np.where(inserted, 1, -1)),
        INPUT: pa.array([stage.plan.name] * panes.num_rows, pa.string()),
    }
    return pa.table([ours.get(f.name, _column(panes, f.name)) for f in schema], schema=schema)


def are_changes(outcome: Outcome) -> Mask:
    """Which panes of a batch are changes."""
    panes = outcome.panes
    kinds = pc.is_in(panes.column("kind"), pa.array(["insert", "retract"]))
    filled = pc.greater(panes.column("records"), 0)
    return np.asarray(pc.and_(kinds, filled)) & ~outcome.restated


def all_changes(tables: Sequence[pa.Table]) -> pa.Table:
    """The changes of several stages as one table, with nulls where one has no such column."""
    return pa.concat_tables(tables, promote_options="default")


def _column(panes: pa.Table, name: str) -> pa.ChunkedArray | None:
    return panes.column(name) if name in panes.column_names else None


def _instants(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Milliseconds as instants; the ends of time are null."""
    endless = pc.or_(pc.equal(times, NEVER), pc.equal(times, BEFORE_ALL))
    return pc.cast(pc.if_else(endless, pa.scalar(None, pa.int64()), times), INSTANT)
