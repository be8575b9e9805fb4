"""Sending stored records as they once came: at their own times, faster, or at a rate; in disorder if wanted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import BrokenRecordError, SourceError, SourceOptionsError
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.source import NOTHING, Source

# Milliseconds at which each record of a batch was once sent, or None where a record does not say.
TimesOf = Callable[[Batch], Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast: `speed` times their own pace, or `rate` records a second; with neither, as fast as can be.

    `disorder` is the share of records that are held back, each by up to `disorder_ms` of their own time.
    """

    speed: float | None = None
    rate: float | None = None
    disorder: float = 0.0
    disorder_ms: int = 0
    seed: int = 0


class Replay:
    """Paces another source.

    Disorder is within a batch of that source, and the same each time: a function of the seed and of the batch's
    position. Nothing is held back beyond the last record of its batch. Only a source that repeats can be replayed.
    """

    repeats = True

    def __init__(self, source: Source, times_of: TimesOf, pace: Pace, clock: Clock) -> None:
        if not source.repeats:
            raise SourceError(f"{source.description} cannot be replayed: it gives each record once")
        how = (
            f"seed {pace.seed}, {pace.disorder:g} held back up to {pace.disorder_ms} ms"
            if pace.disorder
            else ""
        )
        self.description = f"{source.description}, disorder: {how}" if how else source.description
        self._source = source
        self._times_of = times_of
        self._pace = pace
        self._clock = clock

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches, or parts of them, when they are due."""
        begun: tuple[int, int] | None = None
        sent = 0
        for batch in self._source.read(position):
            if not len(batch):
                yield batch
                continue
            shuffled, times = self._in_order(batch)
            begun = begun or (self._clock(), next((time for time in times if time is not None), 0))
            due = self._due(times, begun, sent)
            yield from self._when_due(shuffled, due)
            sent += len(batch)

    def repeat(self, position: Any) -> Iterator[Batch]:
        """Yield the batches of a position again, at once."""
        for batch in self._source.repeat(position):
            yield self._in_order(batch)[0] if len(batch) else batch

    def acknowledged(self, records: int) -> None:
        """Pass on how many records are delivered."""
        self._source.acknowledged(records)

    def _in_order(self, batch: Batch) -> tuple[Batch, list[int | None]]:
        times = list(self._times_of(batch))
        if not self._pace.disorder:
            return batch, times
        chance = np.random.default_rng([self._pace.seed, *msgspec.json.encode(batch.position)])
        held = chance.random(len(batch)) < self._pace.disorder
        delays = np.where(held, chance.integers(0, self._pace.disorder_ms + 1, len(batch)), 0).tolist()
        sendings = _filled(times)
        order = sorted(range(len(batch)), key=lambda place: sendings[place] + delays[place])
        return batch.arranged(order), [sendings[place] + delays[place] for place in order]

    def _due(self, times: Sequence[int | None], begun: tuple[int, int], sent: int) -> list[float]:
        clock, first = begun
        if self._pace.rate is not None:
            return [clock + (sent + place + 1) * 1_000 / self._pace.rate for place in range(len(times))]
        if self._pace.speed is not None:
            return [clock + (time - first) / self._pace.speed for time in _filled(times)]
        return [0.0] * len(times)

    def _when_due(self, batch: Batch, due: Sequence[float]) -> Iterator[Batch]:
        place = 0
        while place < len(batch):
            now, end = self._clock(), place
            while end < len(batch) and due[end] <= now:
                end += 1
            yield batch.part(place, end - place) if end > place else NOTHING
            place = end


def times_by(contract: Contract, field: str, decode: Callable[[bytes], msgspec.Struct]) -> TimesOf:
    """Return how to read the time of sending from a field of the records."""
    if contract.field(field).type != "timestamp":
        raise SourceOptionsError(f"'{field}' of {contract.topic} is no timestamp; name one to replay by")

    def time_of(value: bytes) -> int | None:
        try:
            found: int | None = getattr(decode(value), field)
        except BrokenRecordError:
            return None
        return found

    def times(batch: Batch) -> list[int | None]:
        return [None if place in batch.broken else time_of(value) for place, value in enumerate(batch.values)]

    return times


def _filled(times: Sequence[int | None]) -> list[int]:
    """Give a record without a time that of the record before it."""
    filled: list[int] = []
    last = next((time for time in times if time is not None), 0)
    for time in times:
        last = last if time is None else time
        filled.append(last)
    return filled
