"""What the generators have in common: blocks of draws, made when they are entered, and a record made of each."""

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
    """A generator whose records are made from draws, one block of them at a time."""

    topic: str

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.contract = load_contract(self.topic)
        self._record_type = record_type(self.contract)

    @property
    def name(self) -> str:
        """What is generated, and from which seed."""
        return f"{self.topic}, seed {self.seed}"

    def generate_records(self, first_number: int, send_times: SendTimes) -> Iterator[msgspec.Struct]:
        """Yield the records from number `first` on; endless."""
        for block in count(first_number // BLOCK_RECORDS):
            draws = self.draw_block(block, create_block_rng(self.topic, self.seed, block))
            for number in range(max(first_number, block * BLOCK_RECORDS), (block + 1) * BLOCK_RECORDS):
                fields = self.make_fields(number, send_times(number), draws, number - block * BLOCK_RECORDS)
                yield self._record_type(**fields)

    @abstractmethod
    def draw_block(self, block: int, rng: np.random.Generator) -> DrawsT:
        """Make all draws of a block; nothing else is random."""

    @abstractmethod
    def make_fields(self, number: int, now_ms: int, draws: DrawsT, index: int) -> dict[str, Any]:
        """Return the fields of a record that is sent now."""
