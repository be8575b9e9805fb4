"""The generator protocol, and random numbers with random access.

Record n of a generator depends only on (seed, n), so a feed resumes at n without generating earlier records. Values
are drawn in blocks, each with its own random seed.
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
        """The topic and seed: two generators with the same name produce the same records."""

    def generate_records(self, first_number: int, send_times: SendTimes) -> Iterator[msgspec.Struct]:
        """Yield records from `first_number` on; `send_times(n)` returns the send time of record n in ms."""


def create_block_rng(name: str, seed: int, block: int) -> np.random.Generator:
    """Return the random number generator of one block."""
    return np.random.default_rng([*name.encode(), seed, block])


def make_even_send_times(start_ms: int, records_per_second: float) -> SendTimes:
    """Return send times at a constant rate, for reproducible runs."""
    return lambda number: start_ms + int(number * 1_000 / records_per_second)
