"""Sending stored records as they once came: at their own times, faster, or at a rate; in disorder if wanted."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import BrokenRecordError, SourceError, SourceOptionsError
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.source import NOTHING, Source

_LOG = logging.getLogger(__name__)
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
    position. Nothing is held back beyond the last record of its batch; where that is less than declared, a warning
    says so. Only a source that repeats can be replayed.
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
        self._warned = False

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches, or parts of them, when they are due."""
        return self.paced(map(self._arranged, self._source.read(position)))

    def repeat(self, position: Any) -> Iterator[Batch]:
        """Yield the batches of a position again, at once."""
        return map(self._arranged, self._source.repeat(position))

    def paced(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches in their disorder, or parts of them, when they are due, counting from the first."""
        begun: tuple[int, int] | None = None
        sent = 0
        for batch in batches:
            if not len(batch):
                yield batch
                continue
            times = self._sendings(batch)
            begun = begun or (self._clock(), times[0])
            yield from self._when_due(batch, self._due(times, begun, sent))
            sent += len(batch)

    def acknowledged(self, records: int) -> None:
        """Pass on how many records are delivered."""
        self._source.acknowledged(records)

    def _arranged(self, batch: Batch) -> Batch:
        """Return a batch in the disorder that is declared; where nothing is held back, as it is."""
        if not self._pace.disorder or not len(batch):
            return batch
        chance = np.random.default_rng([self._pace.seed, *msgspec.json.encode(batch.position)])
        held = chance.random(len(batch)) < self._pace.disorder
        delays = np.where(held, chance.integers(0, self._pace.disorder_ms + 1, len(batch)), 0).tolist()
        times = _filled(self._times_of(batch))
        self._warn_of_a_short_batch(max(times) - min(times), len(batch))
        return batch.arranged(sorted(range(len(batch)), key=lambda place: times[place] + delays[place]))

    def _warn_of_a_short_batch(self, span: int, records: int) -> None:
        if span < self._pace.disorder_ms and not self._warned:
            self._warned = True
            _LOG.warning(
                "%s: %d records that are read at once span %d ms, and none is held back by more than that, though "
                "%d ms were asked for",
                self.description, records, span, self._pace.disorder_ms,
            )  # fmt: skip

    def _sendings(self, batch: Batch) -> list[int]:
        """Return when each record was sent by its own time; one that is held back comes with those before it."""
        if self._pace.speed is None:
            return [0] * len(batch)
        return list(accumulate(_filled(self._times_of(batch)), max))

    def _due(self, times: Sequence[int], begun: tuple[int, int], sent: int) -> list[float]:
        clock, first = begun
        if self._pace.rate is not None:
            return [clock + (sent + place + 1) * 1_000 / self._pace.rate for place in range(len(times))]
        if self._pace.speed is not None:
            return [clock + (time - first) / self._pace.speed for time in times]
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
