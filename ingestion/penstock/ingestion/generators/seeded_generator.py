"""Base class of generators: draws a block of random values, then builds a record from each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from penstock.ingestion.contracts import load_contract, record_type
from penstock.ingestion.generators.generator import BLOCK_RECORDS, SendTimes, create_block_rng

DrawsT = TypeVar("DrawsT")


class SeededGenerator(ABC, Generic[DrawsT]):
    """A generator that builds its records from blocks of random draws."""

    topic: str

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.contract = load_contract(self.topic)
        self._record_type = record_type(self.contract)

    @property
    def name(self) -> str:
        """The topic and the seed."""
        return f"{self.topic}, seed {self.seed}"

    def generate_records(self, first_number: int, send_times: SendTimes) -> Iterator[msgspec.Struct]:
        """Yield the records from number `first_number` on, without end."""
        for block in count(first_number // BLOCK_RECORDS):
            draws = self.draw_block(block, create_block_rng(self.topic, self.seed, block))
            for number in range(max(first_number, block * BLOCK_RECORDS), (block + 1) * BLOCK_RECORDS):
                fields = self.make_fields(number, send_times(number), draws, number - block * BLOCK_RECORDS)
                yield self._record_type(**fields)

    @abstractmethod
    def draw_block(self, block: int, rng: np.random.Generator) -> DrawsT:
        """Draw all random values of a block."""

    @abstractmethod
    def make_fields(self, number: int, now_ms: int, draws: DrawsT, index: int) -> dict[str, Any]:
        """Return the fields of the record that is sent at `now_ms`."""
