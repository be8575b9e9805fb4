"""Base class of generators: draws a block of random values, then builds a record from each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from penstock.ingestion.contracts import load_contract, record_type
from penstock.ingestion.generators.generator import BLOCK_RECORDS, SendTimes, create_block_rng
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import (
    SourceContext,
    SourceKind,
    SourceOption,
    parse_positive_number,
)

DrawsT = TypeVar("DrawsT")
_DEFAULT_SEED = 1


class SeededGenerator(SourceKind, ABC, Generic[DrawsT]):
    """A generator that builds its records from blocks of random draws."""

    topic: str
    options = (
        SourceOption(
            "rate", "Records a second; as fast as possible without --rate or --speed.", parse_positive_number
        ),
        SourceOption("seed", "The seed of random values; default: 1.", int),
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = getattr(cls, "topic", "")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.contract = load_contract(self.topic)
        self._record_type = record_type(self.contract)

    @property
    def name(self) -> str:
        """The topic and the seed."""
        return f"{self.topic}, seed {self.seed}"

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return the records of a generator with this seed, at this rate."""
        # Imported late: the package of sources imports the protocol of generators.
        from penstock.ingestion.sources.generator_source import GeneratorSource

        generator = cls(_seed_of(context.options))
        encode = context.record_format.encode
        return GeneratorSource(
            generator, context.contract, context.clock, rate=context.options.get("rate"), encode=encode
        )

    @classmethod
    def default_producer_name(cls, topic: str, options: Mapping[str, Any]) -> str:
        """Return the topic and the seed."""
        return f"{topic}-{_seed_of(options)}"

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


def _seed_of(options: Mapping[str, Any]) -> int:
    seed = options.get("seed")
    return _DEFAULT_SEED if seed is None else int(seed)
