"""What every source is: batches from a position on."""

from collections.abc import Iterator
from typing import Any, Protocol

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.recovery import ReplayRecords

EMPTY_BATCH = SourceBatch((), keys=())


class RecordSource(Protocol):
    """Yields batches; an empty one says that there is nothing now, the end that there is no more at all.

    A source that `repeats` gives, when read from the position of one of its batches, that batch's records again,
    byte for byte, and then those that follow. One that does not has batches without positions.
    """

    description: str
    is_replayable: bool

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, or from the beginning, as they are due."""

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield the batches of a position again and those that follow, without waiting until they are due."""

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield what `repeat` gives as it is due, the first of it now."""

    def on_acknowledged(self, records: int) -> None:
        """Be told that so many of the records that `read` has yielded are delivered."""


class ReplayableSource:
    """What most sources have in common: they repeat by reading again, and nobody waits for an answer."""

    is_replayable = True

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, or from the beginning."""
        raise NotImplementedError

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield the batches of a position again, and those that follow."""
        return self.read(position)

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield batches as they are: they are due when they are there."""
        return batches

    def on_acknowledged(self, records: int) -> None:
        """Take note of nothing: there is nobody to tell."""


class OneShotSource:
    """What sources have in common that give each record once."""

    is_replayable = False
    description: str

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Give nothing."""
        raise SourceError(f"{self.description} cannot go back to {position}: it gives each record once")

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield batches as they are."""
        return batches

    def on_acknowledged(self, records: int) -> None:
        """Take note of nothing: there is nobody to tell."""


def make_replay(source: RecordSource) -> ReplayRecords | None:
    """Return how to get records of a source a second time, or None where it cannot repeat itself."""
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
    """Yield what follows the first `skip` records after a position, as it is due; they have to be there still."""
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
            f"{source.description} is shorter than it was: {skip_records} records after {position} are gone; "
            "bring its data back, or use another producer name"
        )
