"""Converts the engine's milliseconds to the timestamps in tables."""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

TIME_COLUMNS = (
    "window_start",
    "window_end",
    "batch_clock",
    "watermark",
    "replaced_by_start",
    "replaced_by_end",
)
TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")


def to_table_schema(panes: pa.Schema) -> pa.Schema:
    """Return the schema of panes with timestamp columns."""
    return pa.schema([pa.field(f.name, TIMESTAMP_TYPE if f.name in TIME_COLUMNS else f.type) for f in panes])


def as_table(panes: pa.Table) -> pa.Table:
    """Return panes with timestamp columns; unbounded times become null."""
    for name in TIME_COLUMNS:
        if name not in panes.column_names:
            continue
        position = panes.schema.get_field_index(name)
        panes = panes.set_column(position, pa.field(name, TIMESTAMP_TYPE), to_timestamps(panes.column(name)))
    return panes


def to_timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return milliseconds as timestamps; the two sentinels of unbounded time become null."""
    is_unbounded = pc.or_(pc.equal(column, MAX_TIMESTAMP_MS), pc.equal(column, MIN_TIMESTAMP_MS))
    bounded_column = pc.if_else(is_unbounded, pa.scalar(None, pa.int64()), column)
    return pc.cast(pc.cast(bounded_column, pa.timestamp("ms", tz="UTC")), TIMESTAMP_TYPE)
