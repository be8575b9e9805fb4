"""Sessions that are split in the live stream and merged in a recomputation.

A closed session accepts no more records. A record within its gap that arrives later and is not late starts a new
session, which overlaps the closed one. A recomputation merges the two. Both results are correct, so rows that
overlap such a pair are excluded on both sides.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from penstock.quality.table_reads import to_milliseconds

SessionInterval = tuple[tuple[Any, ...], int, int]
"""A key, and the time from the start of its first session to the end of its last."""


def find_split_sessions(rows: pa.Table, key: Sequence[str]) -> list[SessionInterval]:
    """Return the intervals in which sessions of one key overlap or touch."""
    return [
        interval
        for _, key_intervals in groupby(_sort_intervals(rows, key), lambda one: one[0])
        for interval in _merge_overlapping(key_intervals)
    ]


def exclude_split_sessions(
    rows: pa.Table, key: Sequence[str], intervals: Sequence[SessionInterval]
) -> pa.Table:
    """Return the rows that do not overlap or touch an interval of their key."""
    if not intervals or not rows.num_rows:
        return rows
    by_key: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for key_values, start, end in intervals:
        by_key.setdefault(key_values, []).append((start, end))
    is_kept = [
        not any(start <= last and first <= end for first, last in by_key.get(key_values, ()))
        for key_values, start, end in _session_intervals(rows, key)
    ]
    return rows.filter(pa.array(is_kept, pa.bool_()))


def _merge_overlapping(sessions: Iterator[SessionInterval]) -> Iterator[SessionInterval]:
    key_values, merged_start, merged_end = next(sessions)
    count = 1
    for _, start, end in sessions:
        if start <= merged_end:
            merged_end, count = max(merged_end, end), count + 1
            continue
        if count > 1:
            yield key_values, merged_start, merged_end
        merged_start, merged_end, count = start, end, 1
    if count > 1:
        yield key_values, merged_start, merged_end


def _sort_intervals(rows: pa.Table, key: Sequence[str]) -> list[SessionInterval]:
    return sorted(_session_intervals(rows, key), key=lambda one: (repr(one[0]), one[1], one[2]))


def _session_intervals(rows: pa.Table, key: Sequence[str]) -> Iterator[SessionInterval]:
    count = rows.num_rows
    keys = zip(*(rows.column(name).to_pylist() for name in key), strict=True) if key else [()] * count
    bounds = (to_milliseconds(rows.column(name)).to_pylist() for name in ("window_start", "window_end"))
    yield from zip(keys, *bounds, strict=True)
