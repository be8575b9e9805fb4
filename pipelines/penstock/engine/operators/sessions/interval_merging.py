"""Which pieces of time belong together: those of one key that overlap or touch."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.state.header_columns import Int64Array


@dataclass(frozen=True)
class MergedIntervals:
    """The wholes that pieces make up: for each piece the number of its whole, and the bounds of every whole."""

    interval_of_piece: Int64Array
    start: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        """How many wholes there are."""
        return len(self.start)


def merge_intervals(key: Int64Array, start: Int64Array, end: Int64Array) -> MergedIntervals:
    """Join pieces [start, end), given with the number of their key."""
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
    """The greatest end so far, key by key; rows are sorted by key.

    Ends are compared by their rank, so that key and rank fit into one number that only grows from key to key.
    """
    values, rank = np.unique(end, return_inverse=True)
    running = np.maximum.accumulate(np.cumsum(np.append(0, key[1:] != key[:-1])) * len(values) + rank)
    max_end: Int64Array = values[running % len(values)]
    return max_end
