"""The parts of a state: ranges of the hash by which groups are found, so that several may be folded side by side.

A run is sorted by that hash, so a part of it is a stretch of it, and the state needs no other form to be folded in
parts: whoever folds one looks into all runs of the whole, and into those that were written for this part alone.
"""

import re

import numpy as np

from penstock.pipelines.state.columns import Hashes, Ints
from penstock.pipelines.state.run import Groups

COUNT = 16
"""How many there are: as many tasks as a large batch may keep busy. It is part of the state's format."""

_BITS = np.uint64(60)
_NAMED = re.compile(r"run-\d{12}-p(\d\d)-[0-9a-f]+\.arrow")


def parts_of(hi: Hashes) -> Ints:
    """The part of each group."""
    return np.asarray(hi >> _BITS, np.int64)


def within(groups: Groups, part: int) -> Groups:
    """The groups of one part."""
    return groups.where(parts_of(groups.hi) == part)


def run_name(batch_id: int, part: int, attempt: str) -> str:
    """The file of what a batch changes in one part; every attempt writes one of its own."""
    return f"run-{batch_id:012d}-p{part:02d}-{attempt}.arrow"


def is_for(name: str, part: int) -> bool:
    """Whether a run's file may hold groups of a part."""
    named = _NAMED.fullmatch(name)
    return named is None or int(named[1]) == part
