"""Which pieces of time belong together: those of one key that overlap or touch."""

from dataclasses import dataclass

import numpy as np

from penstock.pipelines.state.columns import Ints


@dataclass(frozen=True)
class Joined:
    """The wholes that pieces make up: for each piece the number of its whole, and the bounds of every whole."""

    whole: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        """How many wholes there are."""
        return len(self.start)


def join(key: Ints, start: Ints, end: Ints) -> Joined:
    """Join pieces [start, end), given with the number of their key."""
    count = len(key)
    if not count:
        return Joined(key, start, end)
    order = np.lexsort((start, key))
    begins = np.ones(count, bool)
    reach = _reach(key[order], end[order])
    begins[1:] = (key[order][1:] != key[order][:-1]) | (start[order][1:] > reach[:-1])
    number = np.cumsum(begins) - 1
    whole = np.empty(count, np.int64)
    whole[order] = number
    first, last = np.flatnonzero(begins), np.append(np.flatnonzero(begins)[1:], count) - 1
    return Joined(whole, start[order][first], reach[last])


def _reach(key: Ints, end: Ints) -> Ints:
    """The greatest end so far, key by key; rows are sorted by key.

    Ends are compared by their rank, so that key and rank fit into one number that only grows from key to key.
    """
    values, rank = np.unique(end, return_inverse=True)
    running = np.maximum.accumulate(np.cumsum(np.append(0, key[1:] != key[:-1])) * len(values) + rank)
    reach: Ints = values[running % len(values)]
    return reach
