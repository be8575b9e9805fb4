"""Seeded randomness that can be entered anywhere.

Record n of a generator is a function of (seed, n) alone, so a feed resumes at n without making the records
before it again. Draws are made a block at a time, each block from its own seed.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
import numpy as np

BLOCK = 1_000
Times = Callable[[int], int]


class Generator(Protocol):
    """A reproducible, endless sequence of records for one topic."""

    topic: str

    @property
    def name(self) -> str:
        """What is generated and from which seed: two generators of one name give the same records."""

    def records(self, first: int, times: Times) -> Iterator[msgspec.Struct]:
        """Yield records `first`, `first + 1` …; `times(n)` says in milliseconds when record n is sent."""


def randomness(name: str, seed: int, block: int) -> np.random.Generator:
    """Return the source of randomness of one block of one generator."""
    return np.random.default_rng([*name.encode(), seed, block])


def evenly(start_ms: int, per_second: float) -> Times:
    """Return times at a steady rate from a start: for runs that must be the same each time."""
    return lambda number: start_ms + int(number * 1_000 / per_second)
