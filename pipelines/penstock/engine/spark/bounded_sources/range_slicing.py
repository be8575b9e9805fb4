"""Slices offset ranges, and selects records by them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def slice_ranges(ranges: Sequence[OffsetRange], max_records: int | None) -> list[tuple[OffsetRange, ...]]:
    """Cut ranges into the fewest slices with about `max_records` records at most; None gives one slice."""
    total_records = sum(span.end - span.start for span in ranges)
    slice_count = 1 if max_records is None else max(-(-total_records // max_records), 1)
    return [tuple(slice_range(span, number, slice_count) for span in ranges) for number in range(slice_count)]


def slice_range(span: OffsetRange, number: int, count: int) -> OffsetRange:
    """Return the slice with this number, of `count` slices of a range."""
    start, end = (
        span.start + (span.end - span.start) * boundary // count for boundary in (number, number + 1)
    )
    return OffsetRange(span.topic, span.partition, start, end)


def filter_ranges(records: "DataFrame", ranges: Sequence[OffsetRange]) -> "DataFrame":
    """Return the records of these ranges."""
    conditions = (
        f"(partition = {span.partition} AND offset >= {span.start} AND offset < {span.end})"
        for span in ranges
        if span.end > span.start
    )
    return records.where(" OR ".join(conditions) or "false")
