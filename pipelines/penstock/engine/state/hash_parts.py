"""Hash parts: ranges of the group hash, so that several tasks can process one state in parallel.

A run is sorted by that hash, so a part is a contiguous range of it, and the file format is the same. A task
for one part reads all runs of the whole state, and those written for this part alone.
"""

import numpy as np

from penstock.engine.state.header_columns import HashArray, Int64Array
from penstock.engine.state.sorted_run import GroupHashes

PART_COUNT = 16
"""The number of parts, and so of tasks for a large batch. It is part of the state's format."""

_PART_SHIFT_BITS = np.uint64(60)


def assign_hash_parts(hi: HashArray) -> Int64Array:
    """Return the hash part of each group."""
    return np.asarray(hi >> _PART_SHIFT_BITS, np.int64)


def select_part_groups(groups: GroupHashes, part: int) -> GroupHashes:
    """Return the groups of one part."""
    return groups.select(assign_hash_parts(groups.hi) == part)
