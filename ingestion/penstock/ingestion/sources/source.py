"""The protocol of sources, base classes for implementations, and replay."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.recovery import ReplayRecords

EMPTY_BATCH = SourceBatch((), keys=())


class RecordSource(Protocol):
    """Yields batches. An empty batch means that there is nothing at the moment.

    A replayable source that is read at the position of a batch returns the records of that batch again, byte for
    byte, and then those that follow. The batches of other sources have no positions.
    """

    description: str
    is_replayable: bool

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, or from the beginning, when they are due."""

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield the batches of a position and those that follow, without pacing."""

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield the batches of `replay_from` when they are due; the first is due immediately."""

    def on_acknowledged(self, records: int) -> None:
        """Called with the number of delivered records, counted from the start of `read`."""


@runtime_checkable
class LocatingSource(Protocol):
    """A source that knows where a record is, for messages."""

    def locate_record(self, position: Any, value: bytes) -> str:
        """Return file and line of the first such record in the batch at a position; empty if unknown."""


class UnpacedSource:
    """Base of sources whose batches are due when they exist, and that ignore acknowledgements."""

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield batches unchanged."""
        return batches

    def on_acknowledged(self, records: int) -> None:
        """Do nothing."""


class ReplayableSource(UnpacedSource):
    """Base of sources that replay by reading again."""

    is_replayable = True

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, or from the beginning."""
        raise NotImplementedError

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield the batches of a position again, and those that follow."""
        return self.read(position)


class OneShotSource(UnpacedSource):
    """Base of sources that return each record once."""

    is_replayable = False
    description: str

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Raise SourceError."""
        raise SourceError(f"{self.description} cannot replay from {position}: it returns each record once.")


def make_replay(source: RecordSource) -> ReplayRecords | None:
    """Return the function that reads records again, or None if the source cannot replay."""
    if not source.is_replayable:
        return None

    def replay(position: Any, skip_records: int, record_count: int) -> list[SourceBatch]:
        replayed: list[SourceBatch] = []
        remaining = skip_records + record_count
        for batch in source.replay_from(position):
            if not len(batch):
                break
            replayed.append(batch.slice_records(0, min(remaining, len(batch))))
            remaining -= len(replayed[-1])
            if not remaining:
                break
        return _drop_first(replayed, skip_records)

    return replay


def _drop_first(batches: list[SourceBatch], skip_records: int) -> list[SourceBatch]:
    remaining_batches = []
    for batch in batches:
        dropped = min(skip_records, len(batch))
        skip_records -= dropped
        if dropped < len(batch):
            remaining_batches.append(batch.slice_records(dropped, len(batch) - dropped))
    return remaining_batches


def read_rest(source: RecordSource, position: Any, skip_records: int) -> Iterator[SourceBatch]:
    """Yield what follows `skip_records` records at a position; raise SourceError if these are gone."""
    yield from source.pace_batches(_skip_replayed(source, position, skip_records))


def _skip_replayed(source: RecordSource, position: Any, skip_records: int) -> Iterator[SourceBatch]:
    for batch in source.replay_from(position):
        if skip_records and not len(batch):
            break
        if skip_records >= len(batch) > 0:
            skip_records -= len(batch)
            continue
        yield batch.slice_records(skip_records, len(batch) - skip_records) if skip_records else batch
        skip_records = 0
    if skip_records:
        raise SourceError(
            f"{source.description} is shorter than before: {skip_records} records after {position} are gone. "
            "Restore its data, or use another producer name."
        )
