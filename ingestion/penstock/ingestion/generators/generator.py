"""Seeded randomness that can be entered anywhere.

Record n of a generator is a function of (seed, n) alone, so a feed resumes at n without making the records
before it again. Draws are made a block at a time, each block from its own seed.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
import numpy as np

BLOCK_RECORDS = 1_000
SendTimes = Callable[[int], int]


class RecordGenerator(Protocol):
    """A reproducible, endless sequence of records for one topic."""

    topic: str

    @property
    def name(self) -> str:
        """What is generated and from which seed: two generators of one name give the same records."""

    def generate_records(self, first_number: int, send_times: SendTimes) -> Iterator[msgspec.Struct]:
        """Yield records `first`, `first + 1` …; `times(n)` says in milliseconds when record n is sent."""


def create_block_rng(name: str, seed: int, block: int) -> np.random.Generator:
    """Return the source of randomness of one block of one generator."""
    return np.random.default_rng([*name.encode(), seed, block])


def make_even_send_times(start_ms: int, records_per_second: float) -> SendTimes:
    """Return times at a steady rate from a start: for runs that must be the same each time."""
    return lambda number: start_ms + int(number * 1_000 / records_per_second)
