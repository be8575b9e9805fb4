"""Records on their way to a topic."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.ingestion.errors import BrokenRecordError

Keys = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of a source.

    Reading the source from `position` gives `skip` others and then these again, byte for byte, and then those
    that follow; a source that cannot repeat itself has no position. Reading it from `after` gives only those that
    follow, also when these are gone by then; a part that is not the end of its batch has none. Where `keys` is None
    the values still have to be checked.
    `broken` tells by place which records break their contract; their value is the original bytes. Values are JSON,
    unless `encoded` says that they are in the encoding of the topic.
    """

    values: Sequence[bytes]
    position: Any = None
    keys: Keys | None = None
    broken: Mapping[int, BrokenRecordError] = field(default_factory=dict)
    skip: int = 0
    encoded: bool = False
    after: Any = None

    def __len__(self) -> int:
        return len(self.values)

    def part(self, first: int, count: int) -> "Batch":
        """Return some of the records."""
        keys = None if self.keys is None else self.keys[first : first + count]
        broken = {place - first: error for place, error in self.broken.items() if 0 <= place - first < count}
        values = self.values[first : first + count]
        after = self.after if first + count >= len(self) else None
        return Batch(values, self.position, keys, broken, self.skip + first, self.encoded, after)

    def arranged(self, order: Sequence[int]) -> "Batch":
        """Return the whole batch in another order."""
        keys = None if self.keys is None else [self.keys[place] for place in order]
        broken = {at: self.broken[place] for at, place in enumerate(order) if place in self.broken}
        values = [self.values[place] for place in order]
        return Batch(values, self.position, keys, broken, self.skip, self.encoded, self.after)

    def checked(
        self, keys: Keys, broken: Mapping[int, BrokenRecordError], values: Sequence[bytes] | None = None
    ) -> "Batch":
        """Return the batch with what a check has found, and with other values where it has encoded them."""
        return replace(self, keys=keys, broken=broken, values=self.values if values is None else values)


def parts(batch: Batch, records: int, size: int) -> Iterator[Batch]:
    """Cut a batch into parts of at most so many records and, but for single records, bytes."""
    first = 0
    while first < len(batch):
        part = batch.part(first, records) if len(batch) > records else batch
        while len(part) > 1 and sum(map(len, part.values)) > size:
            part = batch.part(first, len(part) // 2)
        yield part
        first += len(part)


def joined(batches: Sequence[Batch]) -> Batch:
    """Put checked batches together; what is made of several has the position of the first."""
    if len(batches) == 1:
        return batches[0]
    values: list[bytes] = []
    keys: list[bytes | None] = []
    broken: dict[int, BrokenRecordError] = {}
    for batch in batches:
        broken |= {len(values) + place: error for place, error in batch.broken.items()}
        values += batch.values
        keys += batch.keys or ()
    first = batches[0] if batches else Batch(())
    return Batch(values, first.position, keys, broken, first.skip)
