"""The parts of a state: ranges of the hash by which groups are found, so that several may be folded side by side.

A run is sorted by that hash, so a part of it is a stretch of it, and the state needs no other form to be folded in
parts: whoever folds one looks into all runs of the whole, and into those that were written for this part alone.
"""

import numpy as np

from penstock.pipelines.state.columns import Hashes, Ints
from penstock.pipelines.state.run import Groups

COUNT = 16
"""How many there are: as many tasks as a large batch may keep busy. It is part of the state's format."""

_BITS = np.uint64(60)


def parts_of(hi: Hashes) -> Ints:
    """The part of each group."""
    return np.asarray(hi >> _BITS, np.int64)


def within(groups: Groups, part: int) -> Groups:
    """The groups of one part."""
    return groups.where(parts_of(groups.hi) == part)
