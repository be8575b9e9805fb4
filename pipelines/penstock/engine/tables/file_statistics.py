"""Statistics of a data file in Delta's log, by which readers skip files."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_TIMESTAMP_US, LATEST_TIMESTAMP_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, which a text of four digits can express. The window of the last second ends after them: a
file that holds it has no statistics of that column, and is never pruned."""
_ENCODER = msgspec.json.Encoder(decimal_format="number")
MAX_BOUND_TEXT_CHARS = 64
"""The longest text in statistics: longer texts would make the log larger than they save in reads."""


def build_file_statistics(rows: pa.Table) -> str:
    """Return a file's statistics as JSON: row count, null counts, and bounds of numbers, texts and times.

    Delta's readers skip files by them. Some readers treat a column without bounds as one without matching rows.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for field in rows.schema:
        bounds = _column_bounds(rows.column(field.name))
        if bounds is not None:
            least[field.name], greatest[field.name] = bounds
    nulls = {f.name: rows.column(f.name).null_count for f in rows.schema if not pa.types.is_nested(f.type)}
    payload = {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return encode_statistics(payload)


def _column_bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the least and the greatest value for statistics; None when they cannot be expressed exactly."""
    if pa.types.is_timestamp(column.type):
        least, greatest = _column_min_max(pc.cast(column, pa.int64()))
        is_representable = (
            least is not None and least >= EARLIEST_TIMESTAMP_US and greatest <= LATEST_TIMESTAMP_US
        )
        return (format_timestamp(least), format_timestamp(greatest)) if is_representable else None
    if pa.types.is_integer(column.type):
        least, greatest = _column_min_max(column)
        return None if least is None else (least, greatest)
    if pa.types.is_floating(column.type):
        least, greatest = _column_min_max(column)
        is_finite = least is not None and isfinite(least) and isfinite(greatest)
        # NaN is greater than every number, but min_max ignores it.
        return (least, greatest) if is_finite and not pc.any(pc.is_nan(column)).as_py() else None
    if pa.types.is_date32(column.type):
        least, greatest = _column_min_max(column)
        return None if least is None else (least.isoformat(), greatest.isoformat())
    if pa.types.is_decimal(column.type):
        least, greatest = _column_min_max(column)
        return None if least is None else (least, greatest)
    if pa.types.is_string(column.type):
        least, greatest = _column_min_max(column)
        is_short = least is not None and max(len(least), len(greatest)) <= MAX_BOUND_TEXT_CHARS
        return (least, greatest) if is_short else None
    return None


def _column_min_max(column: pa.ChunkedArray) -> tuple[Any, Any]:
    bounds = pc.min_max(column).as_py()
    return bounds["min"], bounds["max"]


def encode_statistics(statistics: Mapping[str, Any]) -> str:
    """Return statistics as JSON, with all digits of decimals."""
    return _ENCODER.encode(statistics).decode()


def format_timestamp(microseconds: int) -> str:
    """Return a timestamp in the format of a file's statistics."""
    return (UNIX_EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)
