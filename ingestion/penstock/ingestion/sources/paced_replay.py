"""Sending stored records as they once came: at their own times, faster, or at a rate; in disorder if wanted."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from penstock.core.clock import Clock
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import InvalidRecordError, SourceError, SourceOptionsError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.source import EMPTY_BATCH, RecordSource

_LOGGER = logging.getLogger(__name__)
# Milliseconds at which each record of a batch was once sent, or None where a record does not say.
ReadSendTimes = Callable[[SourceBatch], Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class ReplayPace:
    """How fast: `speed` times their own pace, or `rate` records a second; with neither, as fast as can be.

    `disorder` is the share of records that are held back, each by up to `disorder_ms` of their own time.
    """

    speed: float | None = None
    rate: float | None = None
    disorder: float = 0.0
    disorder_ms: int = 0
    seed: int = 0


class PacedReplaySource:
    """Paces another source.

    Disorder is within a batch of that source, and the same each time: a function of the seed and of the batch's
    position. Nothing is held back beyond the last record of its batch; where that is less than declared, a warning
    says so. Only a source that repeats can be replayed.
    """

    is_replayable = True

    def __init__(
        self, source: RecordSource, read_send_times: ReadSendTimes, pace: ReplayPace, clock: Clock
    ) -> None:
        if not source.is_replayable:
            raise SourceError(f"{source.description} cannot be replayed: it gives each record once")
        disorder_text = (
            f"seed {pace.seed}, {pace.disorder:g} held back up to {pace.disorder_ms} ms"
            if pace.disorder
            else ""
        )
        self.description = (
            f"{source.description}, disorder: {disorder_text}" if disorder_text else source.description
        )
        self._source = source
        self._read_send_times = read_send_times
        self._pace = pace
        self._clock = clock
        self._has_warned = False

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches, or parts of them, when they are due."""
        return self.pace_batches(map(self._apply_disorder, self._source.read(position)))

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield the batches of a position again, at once."""
        return map(self._apply_disorder, self._source.replay_from(position))

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield batches in their disorder, or parts of them, when they are due, counting from the first."""
        pace_start: tuple[int, int] | None = None
        sent_records = 0
        for batch in batches:
            if not len(batch):
                yield batch
                continue
            times = self._send_times(batch)
            pace_start = pace_start or (self._clock(), times[0])
            yield from self._yield_when_due(batch, self._due_times(times, pace_start, sent_records))
            sent_records += len(batch)

    def on_acknowledged(self, records: int) -> None:
        """Pass on how many records are delivered."""
        self._source.on_acknowledged(records)

    def _apply_disorder(self, batch: SourceBatch) -> SourceBatch:
        """Return a batch in the disorder that is declared; where nothing is held back, as it is."""
        if not self._pace.disorder or not len(batch):
            return batch
        rng = np.random.default_rng([self._pace.seed, *msgspec.json.encode(batch.position)])
        is_held_back = rng.random(len(batch)) < self._pace.disorder
        delays = np.where(is_held_back, rng.integers(0, self._pace.disorder_ms + 1, len(batch)), 0).tolist()
        times = _fill_missing_times(self._read_send_times(batch))
        self._warn_if_batch_too_short(max(times) - min(times), len(batch))
        return batch.reorder(sorted(range(len(batch)), key=lambda index: times[index] + delays[index]))

    def _warn_if_batch_too_short(self, span_ms: int, records: int) -> None:
        if span_ms < self._pace.disorder_ms and not self._has_warned:
            self._has_warned = True
            _LOGGER.warning(
                "%s: %d records that are read at once span %d ms, and none is held back by more than that, though "
                "%d ms were asked for",
                self.description, records, span_ms, self._pace.disorder_ms,
            )  # fmt: skip

    def _send_times(self, batch: SourceBatch) -> list[int]:
        """Return when each record was sent by its own time; one that is held back comes with those before it."""
        if self._pace.speed is None:
            return [0] * len(batch)
        return list(accumulate(_fill_missing_times(self._read_send_times(batch)), max))

    def _due_times(self, times: Sequence[int], pace_start: tuple[int, int], sent_records: int) -> list[float]:
        start_ms, first_send_ms = pace_start
        if self._pace.rate is not None:
            return [
                start_ms + (sent_records + index + 1) * 1_000 / self._pace.rate for index in range(len(times))
            ]
        if self._pace.speed is not None:
            return [start_ms + (time - first_send_ms) / self._pace.speed for time in times]
        return [0.0] * len(times)

    def _yield_when_due(self, batch: SourceBatch, due_times: Sequence[float]) -> Iterator[SourceBatch]:
        index = 0
        while index < len(batch):
            now, end = self._clock(), index
            while end < len(batch) and due_times[end] <= now:
                end += 1
            yield batch.slice_records(index, end - index) if end > index else EMPTY_BATCH
            index = end


def read_send_times_from(
    contract: Contract, field: str, decode: Callable[[bytes], msgspec.Struct]
) -> ReadSendTimes:
    """Return how to read the time of sending from a field of the records."""
    if contract.get_field(field).type != "timestamp":
        raise SourceOptionsError(f"'{field}' of {contract.topic} is no timestamp; name one to replay by")

    def read_time(value: bytes) -> int | None:
        try:
            send_time: int | None = getattr(decode(value), field)
        except InvalidRecordError:
            return None
        return send_time

    def read_times(batch: SourceBatch) -> list[int | None]:
        return [
            None if index in batch.invalid else read_time(value) for index, value in enumerate(batch.values)
        ]

    return read_times


def _fill_missing_times(times: Sequence[int | None]) -> list[int]:
    """Give a record without a time that of the record before it."""
    filled: list[int] = []
    last = next((time for time in times if time is not None), 0)
    for time in times:
        last = last if time is None else time
        filled.append(last)
    return filled
