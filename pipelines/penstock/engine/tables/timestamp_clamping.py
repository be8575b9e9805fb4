"""Times of tables as Python can have them.

A record of the last second of the year 9999 is in a window that ends after it, one of the first second of year 1 in
one that may begin before it. Tables hold such times; Python's calendar does not, and reading one raises an
OverflowError.
"""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.tables.batch_table import EARLIEST_TIMESTAMP_US, LATEST_TIMESTAMP_US


def clamp_timestamps(rows: pa.Table) -> pa.Table:
    """The same rows; times that lie outside of the years 1 to 9999 stand at the edge of these."""
    for position, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(position, field.name, _clamp_column(rows.column(position)))
    return rows


def _clamp_column(times: pa.ChunkedArray) -> pa.ChunkedArray:
    timestamp_type = pa.timestamp("us", times.type.tz)
    microseconds = times.cast(timestamp_type, safe=False).cast(pa.int64())
    clamped = pc.max_element_wise(microseconds, EARLIEST_TIMESTAMP_US, skip_nulls=False)
    return pc.min_element_wise(clamped, LATEST_TIMESTAMP_US, skip_nulls=False).cast(timestamp_type)
