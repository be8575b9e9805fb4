"""Paced replay: sends stored records at their original pace, faster, or at a rate, optionally out of order."""

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
from penstock.ingestion.sources.source import EMPTY_BATCH, LocatingSource, RecordSource
from penstock.ingestion.sources.source_kind import (
    SourceContext,
    SourceOption,
    duration_option,
    parse_positive_number,
    parse_share,
)

_LOGGER = logging.getLogger(__name__)
_DEFAULT_SEED = 1
PACE_OPTIONS = (
    SourceOption("speed", "Replay at this multiple of the original pace.", parse_positive_number),
    SourceOption(
        "rate", "Records a second; as fast as possible without --rate or --speed.", parse_positive_number
    ),
    SourceOption("replay_by", "The timestamp field for --speed and --disorder; default: the event time."),
    SourceOption("disorder", "The share of records to delay, from 0 to 1.", parse_share),
    duration_option("max_delay", "The maximum delay for --disorder, within some thousand records."),
    SourceOption("seed", "The seed of random values; default: 1.", int),
)
# The send time of each record of a batch in milliseconds, or None if a record has none.
ReadSendTimes = Callable[[SourceBatch], Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class ReplayPace:
    """The pace: `speed` times the original pace, or `rate` records a second, or as fast as possible.

    The share `disorder` of the records is delayed, each by up to `disorder_ms` of its own time.
    """

    speed: float | None = None
    rate: float | None = None
    disorder: float = 0.0
    disorder_ms: int = 0
    seed: int = 0


class PacedReplaySource:
    """Paces another source, which must be replayable.

    Records are reordered within a batch of that source. The order is deterministic: a function of the seed and the
    position of the batch. No record is delayed beyond the end of its batch; a warning reports if that limits the
    delay.
    """

    is_replayable = True

    def __init__(
        self, source: RecordSource, read_send_times: ReadSendTimes, pace: ReplayPace, clock: Clock
    ) -> None:
        if not source.is_replayable:
            raise SourceError(f"{source.description} cannot be replayed: it returns each record once.")
        disorder_text = (
            f"seed {pace.seed}, {pace.disorder:g} delayed up to {pace.disorder_ms} ms"
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

    def locate_record(self, position: Any, value: bytes) -> str:
        """Return file and line of a record, if its source knows."""
        source = self._source
        return source.locate_record(position, value) if isinstance(source, LocatingSource) else ""

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield the batches of a position again, without pacing."""
        return map(self._apply_disorder, self._source.replay_from(position))

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield reordered batches, or parts of them, when they are due relative to the first."""
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
        """Forward the number of delivered records."""
        self._source.on_acknowledged(records)

    def _apply_disorder(self, batch: SourceBatch) -> SourceBatch:
        """Return a batch in its deterministic disorder."""
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
                "Disorder limited by the time span of a batch "
                "(source=%s, records=%d, span_ms=%d, max_delay_ms=%d)",
                self.description, records, span_ms, self._pace.disorder_ms,
            )  # fmt: skip

    def _send_times(self, batch: SourceBatch) -> list[int]:
        """Return the send time of each record; a delayed record has the time of the records before it."""
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


def read_pace(context: SourceContext) -> ReplayPace:
    """Return the pace of the options; raise SourceOptionsError if they contradict each other."""
    options = context.options
    speed, rate, disorder = options.get("speed"), options.get("rate"), options.get("disorder") or 0.0
    max_delay_ms, replay_by, seed = (
        options.get("max_delay") or 0,
        options.get("replay_by"),
        options.get("seed"),
    )
    if speed is not None and rate is not None:
        raise SourceOptionsError("--speed and --rate exclude each other. Leave one of them out.")
    if bool(disorder) != bool(max_delay_ms):
        missing = "--max-delay" if disorder else "--disorder"
        raise SourceOptionsError(f"--disorder and --max-delay need each other. Add {missing}.")
    if replay_by is not None and speed is None and not disorder:
        raise SourceOptionsError("--replay-by needs --speed or --disorder. Add one, or leave it out.")
    if seed is not None and not disorder:
        raise SourceOptionsError("--seed has no effect without --disorder. Add it, or leave the seed out.")
    used_seed = _DEFAULT_SEED if seed is None else seed
    return ReplayPace(speed, rate, disorder, max_delay_ms, used_seed if disorder else 0)


def apply_pace(context: SourceContext, source: RecordSource, pace: ReplayPace) -> RecordSource:
    """Return a source with a pace; without a pace, the source itself."""
    if pace == ReplayPace():
        return source
    field = context.options.get("replay_by") or context.contract.event_time
    if field is None:
        raise SourceOptionsError(
            f"Contract {context.contract.topic} has no event time. Name a field with --replay-by."
        )
    read_send_times = read_send_times_from(context.contract, field, context.record_format.decode)
    return PacedReplaySource(source, read_send_times, pace, context.clock)


def read_send_times_from(
    contract: Contract, field: str, decode: Callable[[bytes], msgspec.Struct]
) -> ReadSendTimes:
    """Return the function that reads send times from a field of the records."""
    field_type = contract.get_field(field).parsed_type
    if not field_type.is_timestamp:
        raise SourceOptionsError(
            f"Field '{field}' of {contract.topic} is not a timestamp. Use a timestamp field for --replay-by."
        )

    def read_time(value: bytes) -> int | None:
        try:
            send_time = getattr(decode(value), field)
        except InvalidRecordError:
            return None
        return None if send_time is None else field_type.to_epoch_ms(send_time)

    def read_times(batch: SourceBatch) -> list[int | None]:
        return [
            None if index in batch.invalid else read_time(value) for index, value in enumerate(batch.values)
        ]

    return read_times


def _fill_missing_times(times: Sequence[int | None]) -> list[int]:
    """Fill missing times with the time of the record before."""
    filled: list[int] = []
    last = next((time for time in times if time is not None), 0)
    for time in times:
        last = last if time is None else time
        filled.append(last)
    return filled
