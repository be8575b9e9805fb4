"""Merge intervals of one key that overlap or touch."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.state.header_columns import Int64Array


@dataclass(frozen=True)
class MergedIntervals:
    """Merged intervals: for each piece the number of its interval, and the bounds of every interval."""

    interval_of_piece: Int64Array
    start: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        """Return the number of intervals."""
        return len(self.start)


def merge_intervals(key: Int64Array, start: Int64Array, end: Int64Array) -> MergedIntervals:
    """Merge the pieces [start, end) of each key."""
    count = len(key)
    if not count:
        return MergedIntervals(key, start, end)
    order = np.lexsort((start, key))
    is_first = np.ones(count, bool)
    max_end = _running_max_end(key[order], end[order])
    is_first[1:] = (key[order][1:] != key[order][:-1]) | (start[order][1:] > max_end[:-1])
    interval_number = np.cumsum(is_first) - 1
    interval_of_piece = np.empty(count, np.int64)
    interval_of_piece[order] = interval_number
    first, last = np.flatnonzero(is_first), np.append(np.flatnonzero(is_first)[1:], count) - 1
    return MergedIntervals(interval_of_piece, start[order][first], max_end[last])


def _running_max_end(key: Int64Array, end: Int64Array) -> Int64Array:
    """Return the greatest end so far within each key; rows are sorted by key.

    Ends are replaced by their ranks, so that key and rank combine into one number that increases from key to
    key.
    """
    values, rank = np.unique(end, return_inverse=True)
    running = np.maximum.accumulate(np.cumsum(np.append(0, key[1:] != key[:-1])) * len(values) + rank)
    max_end: Int64Array = values[running % len(values)]
    return max_end
