"""From the fold's milliseconds to the timestamps that a reader of a table sees."""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

TIMES = (
    "window_start",
    "window_end",
    "batch_clock",
    "watermark",
    "replaced_by_start",
    "replaced_by_end",
)
TIMESTAMP = pa.timestamp("us", tz="UTC")


def table_schema(panes: pa.Schema) -> pa.Schema:
    """The schema of a table of panes: as the fold has it, with times as timestamps."""
    return pa.schema([pa.field(f.name, TIMESTAMP if f.name in TIMES else f.type) for f in panes])


def as_table(panes: pa.Table) -> pa.Table:
    """Panes as they stand in a table. What lies before or after all time is null."""
    for name in TIMES:
        if name not in panes.column_names:
            continue
        position = panes.schema.get_field_index(name)
        panes = panes.set_column(position, pa.field(name, TIMESTAMP), timestamps(panes.column(name)))
    return panes


def timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Milliseconds as timestamps; the two ends of time as null."""
    endless = pc.or_(pc.equal(column, NEVER), pc.equal(column, BEFORE_ALL))
    finite = pc.if_else(endless, pa.scalar(None, pa.int64()), column)
    return pc.cast(pc.cast(finite, pa.timestamp("ms", tz="UTC")), TIMESTAMP)
