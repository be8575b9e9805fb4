"""Records on their way to a topic."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.ingestion.errors import InvalidRecordError

RecordKeys = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class SourceBatch:
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
    keys: RecordKeys | None = None
    invalid: Mapping[int, InvalidRecordError] = field(default_factory=dict)
    skip_records: int = 0
    is_encoded: bool = False
    position_after: Any = None

    def __len__(self) -> int:
        return len(self.values)

    def slice_records(self, first: int, count: int) -> "SourceBatch":
        """Return some of the records."""
        keys = None if self.keys is None else self.keys[first : first + count]
        invalid = {
            index - first: error for index, error in self.invalid.items() if 0 <= index - first < count
        }
        values = self.values[first : first + count]
        position_after = self.position_after if first + count >= len(self) else None
        return SourceBatch(
            values, self.position, keys, invalid, self.skip_records + first, self.is_encoded, position_after
        )

    def reorder(self, order: Sequence[int]) -> "SourceBatch":
        """Return the whole batch in another order."""
        keys = None if self.keys is None else [self.keys[old_index] for old_index in order]
        invalid = {
            new_index: self.invalid[old_index]
            for new_index, old_index in enumerate(order)
            if old_index in self.invalid
        }
        values = [self.values[old_index] for old_index in order]
        return SourceBatch(
            values, self.position, keys, invalid, self.skip_records, self.is_encoded, self.position_after
        )

    def with_check_result(
        self,
        keys: RecordKeys,
        invalid: Mapping[int, InvalidRecordError],
        values: Sequence[bytes] | None = None,
    ) -> "SourceBatch":
        """Return the batch with what a check has found, and with other values where it has encoded them."""
        return replace(self, keys=keys, invalid=invalid, values=self.values if values is None else values)


def split_batch(batch: SourceBatch, max_records: int, max_bytes: int) -> Iterator[SourceBatch]:
    """Cut a batch into parts of at most so many records and, but for single records, bytes."""
    first = 0
    while first < len(batch):
        chunk = batch.slice_records(first, max_records) if len(batch) > max_records else batch
        while len(chunk) > 1 and sum(map(len, chunk.values)) > max_bytes:
            chunk = batch.slice_records(first, len(chunk) // 2)
        yield chunk
        first += len(chunk)


def concat_batches(batches: Sequence[SourceBatch]) -> SourceBatch:
    """Put checked batches together; what is made of several has the position of the first."""
    if len(batches) == 1:
        return batches[0]
    values: list[bytes] = []
    keys: list[bytes | None] = []
    invalid: dict[int, InvalidRecordError] = {}
    for batch in batches:
        invalid |= {len(values) + index: error for index, error in batch.invalid.items()}
        values += batch.values
        keys += batch.keys or ()
    first = batches[0] if batches else SourceBatch(())
    return SourceBatch(values, first.position, keys, invalid, first.skip_records)
