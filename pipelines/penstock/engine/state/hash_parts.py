"""The parts of a state: ranges of the hash by which groups are found, so that several may be folded side by side.

A run is sorted by that hash, so a part of it is a stretch of it, and the state needs no other form to be folded in
parts: whoever folds one looks into all runs of the whole, and into those that were written for this part alone.
"""

import numpy as np

from penstock.engine.state.header_columns import HashArray, Int64Array
from penstock.engine.state.sorted_run import GroupHashes

PART_COUNT = 16
"""How many there are: as many tasks as a large batch may keep busy. It is part of the state's format."""

_PART_SHIFT_BITS = np.uint64(60)


def assign_hash_parts(hi: HashArray) -> Int64Array:
    """The part of each group."""
    return np.asarray(hi >> _PART_SHIFT_BITS, np.int64)


def select_part_groups(groups: GroupHashes, part: int) -> GroupHashes:
    """The groups of one part."""
    return groups.select(assign_hash_parts(groups.hi) == part)
