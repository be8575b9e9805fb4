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
    byte for byte, and then those that follow.
    """

    description: str
    repeats: bool

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on, or from the beginning."""


def replay_of(source: Source) -> Replay | None:
    """Return how to get records of a source a second time, or None where it cannot repeat itself."""
    if not source.repeats:
        return None

    def replay(position: Any, skip: int, count: int) -> Batch:
        values: list[bytes] = []
        keys: list[bytes | None] | None = None
        for batch in source.read(position):
            if not len(batch):
                break
            values += batch.values
            if batch.keys is not None:
                keys = [*(keys or ()), *batch.keys]
            if len(values) >= skip + count:
                break
        return Batch(values, position, keys).part(skip, count)

    return replay


def rest_of(source: Source, position: Any, skip: int) -> Iterator[Batch]:
    """Yield what follows the first `skip` records after a position."""
    for batch in source.read(position):
        if skip >= len(batch) > 0:
            skip -= len(batch)
        elif skip and not len(batch):
            raise SourceError(
                f"{source.description} is shorter than it was: {skip} records after {position} are gone"
            )
        else:
            yield batch.part(skip, len(batch) - skip) if skip else batch
            skip = 0
