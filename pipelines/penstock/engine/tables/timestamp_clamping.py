"""Clamps the timestamps of tables to the years that Python's datetime supports.

The window of a record in the last second of the year 9999 ends after that year, and one in the first second of the
year 1 may start before it. Tables hold such timestamps, but Python raises OverflowError for them.
"""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.tables.file_statistics import EARLIEST_TIMESTAMP_US, LATEST_TIMESTAMP_US


def clamp_timestamps(rows: pa.Table) -> pa.Table:
    """Return the same rows with timestamps clamped to the years 1 to 9999."""
    for position, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(position, field.name, _clamp_column(rows.column(position)))
    return rows


def _clamp_column(times: pa.ChunkedArray) -> pa.ChunkedArray:
    timestamp_type = pa.timestamp("us", times.type.tz)
    microseconds = times.cast(timestamp_type, safe=False).cast(pa.int64())
    clamped = pc.max_element_wise(microseconds, EARLIEST_TIMESTAMP_US, skip_nulls=False)
    return pc.min_element_wise(clamped, LATEST_TIMESTAMP_US, skip_nulls=False).cast(timestamp_type)
