"""Generators as sources: at a rate by the clock, or as fast as can be."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.generators import Generator
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import Encode, encoded
from penstock.ingestion.sources.source import NOTHING, Repeatable

_BATCH = 5_000
# A feed that was held up goes on at its rate; it makes up for at most this much of what it missed.
_CATCH_UP_MS = 1_000


class Generated(Repeatable):
    """Records of a generator, stamped with the clock at which they are made.

    A position holds that clock, so that a batch can be made again as it was. With `rate` None records are made
    as fast as they are taken.
    """

    def __init__(
        self,
        generator: Generator,
        contract: Contract,
        clock: Callable[[], int],
        *,
        rate: float | None = None,
        encode: Encode | None = None,
    ) -> None:
        self.description = f"generator {generator.name}"
        self._generator = generator
        self._contract = contract
        self._clock = clock
        self._rate = rate
        self._encode = encode or json_codec(contract).encode

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on; endless."""
        number = 0
        if position is not None:
            number = position["next"] + position["count"]
            yield self._made(position["next"], position["count"], position["now"])
        begun, base = self._clock(), number
        while True:
            now = self._clock()
            due = _BATCH if self._rate is None else base + int((now - begun) * self._rate / 1_000) - number
            if due <= 0:
                yield NOTHING
                continue
            yield self._made(number, min(due, _BATCH), now)
            number += min(due, _BATCH)
            if self._rate is not None and due > self._rate * _CATCH_UP_MS / 1_000 + 1:
                begun, base = now, number

    def _made(self, first: int, count: int, now: int) -> Batch:
        records = islice(self._generator.records(first, lambda _number: now), count)
        return encoded(
            self._contract, list(records), {"next": first, "count": count, "now": now}, self._encode
        )
