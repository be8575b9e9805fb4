"""What the generators have in common: blocks of draws, made when they are entered, and a record made of each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from penstock.ingestion.contracts import load_contract, record_type
from penstock.ingestion.generators.blocks import BLOCK, Times, randomness

Draws = TypeVar("Draws")


class Seeded(ABC, Generic[Draws]):
    """A generator whose records are made from draws, one block of them at a time."""

    topic: str

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.contract = load_contract(self.topic)
        self._record = record_type(self.contract)

    @property
    def name(self) -> str:
        """What is generated, and from which seed."""
        return f"{self.topic}, seed {self.seed}"

    def records(self, first: int, times: Times) -> Iterator[msgspec.Struct]:
        """Yield the records from number `first` on; endless."""
        for block in count(first // BLOCK):
            draws = self.draw(block, randomness(self.topic, self.seed, block))
            for number in range(max(first, block * BLOCK), (block + 1) * BLOCK):
                fields = self.fields(number, times(number), draws, number - block * BLOCK)
                yield self._record(**fields)

    @abstractmethod
    def draw(self, block: int, source: np.random.Generator) -> Draws:
        """Make all draws of a block; nothing else is random."""

    @abstractmethod
    def fields(self, number: int, now_ms: int, draws: Draws, place: int) -> dict[str, Any]:
        """Return the fields of a record that is sent now."""
