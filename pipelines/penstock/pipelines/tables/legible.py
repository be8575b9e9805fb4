"""Times of tables as Python can have them.

A record of the last second of the year 9999 is in a window that ends after it, one of the first second of year 1 in
one that may begin before it. Tables hold such times; Python's calendar does not, and reading one raises an
OverflowError.
"""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.tables.table import EARLIEST_US, LATEST_US


def legible(rows: pa.Table) -> pa.Table:
    """The same rows; times that lie outside of the years 1 to 9999 stand at the edge of these."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, _within(rows.column(place)))
    return rows


def _within(times: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = pa.timestamp("us", times.type.tz)
    whole = times.cast(kind, safe=False).cast(pa.int64())
    kept = pc.max_element_wise(whole, EARLIEST_US, skip_nulls=False)
    return pc.min_element_wise(kept, LATEST_US, skip_nulls=False).cast(kind)
