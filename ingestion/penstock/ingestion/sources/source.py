"""What every source is: batches from a position on."""

from collections.abc import Iterator
from typing import Any, Protocol

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.recovery import Replay

NOTHING = Batch((), keys=())


class Source(Protocol):
    """Yields batches; an empty one says that there is nothing now, the end that there is no more at all.

    A source that `repeats` gives, when read from the position of one of its batches, that batch's records again,
    byte for byte, and then those that follow. One that does not has batches without positions.
    """

    description: str
    repeats: bool

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on, or from the beginning, as they are due."""

    def repeat(self, position: Any) -> Iterator[Batch]:
        """Yield the batches of a position again and those that follow, without waiting until they are due."""

    def paced(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield what `repeat` gives as it is due, the first of it now."""

    def acknowledged(self, records: int) -> None:
        """Be told that so many of the records that `read` has yielded are delivered."""


class Repeatable:
    """What most sources have in common: they repeat by reading again, and nobody waits for an answer."""

    repeats = True

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on, or from the beginning."""
        raise NotImplementedError

    def repeat(self, position: Any) -> Iterator[Batch]:
        """Yield the batches of a position again, and those that follow."""
        return self.read(position)

    def paced(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches as they are: they are due when they are there."""
        return batches

    def acknowledged(self, records: int) -> None:
        """Take note of nothing: there is nobody to tell."""


class Once:
    """What sources have in common that give each record once."""

    repeats = False
    description: str

    def repeat(self, position: Any) -> Iterator[Batch]:
        """Give nothing."""
        raise SourceError(f"{self.description} cannot go back to {position}: it gives each record once")

    def paced(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches as they are."""
        return batches

    def acknowledged(self, records: int) -> None:
        """Take note of nothing: there is nobody to tell."""


def replay_of(source: Source) -> Replay | None:
    """Return how to get records of a source a second time, or None where it cannot repeat itself."""
    if not source.repeats:
        return None

    def replay(position: Any, skip: int, count: int) -> list[Batch]:
        found: list[Batch] = []
        left = skip + count
        for batch in source.repeat(position):
            if not len(batch):
                break
            found.append(batch.part(0, min(left, len(batch))))
            left -= len(found[-1])
            if not left:
                break
        return _without_first(found, skip)

    return replay


def _without_first(batches: list[Batch], skip: int) -> list[Batch]:
    kept = []
    for batch in batches:
        gone = min(skip, len(batch))
        skip -= gone
        if gone < len(batch):
            kept.append(batch.part(gone, len(batch) - gone))
    return kept


def rest_of(source: Source, position: Any, skip: int) -> Iterator[Batch]:
    """Yield what follows the first `skip` records after a position, as it is due; they have to be there still."""
    yield from source.paced(_beyond(source, position, skip))


def _beyond(source: Source, position: Any, skip: int) -> Iterator[Batch]:
    for batch in source.repeat(position):
        if skip and not len(batch):
            break
        if skip >= len(batch) > 0:
            skip -= len(batch)
            continue
        yield batch.part(skip, len(batch) - skip) if skip else batch
        skip = 0
    if skip:
        raise SourceError(
            f"{source.description} is shorter than it was: {skip} records after {position} are gone; "
            "bring its data back, or use another producer name"
        )
