"""Batches of records on their way to a topic."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.ingestion.errors import InvalidRecordError

RecordKeys = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Consecutive records of a source.

    Reading the source at `position` yields `skip_records` other records, then these again, byte for byte, then
    those that follow. A source that cannot replay has no positions. Reading it at `position_after` yields only the
    records that follow, even if these no longer exist; a slice that is not the end of its batch has none. If `keys`
    is None, the values are not validated yet. `invalid` maps the index of each invalid record to its error; its
    value is the original bytes. Values are JSON, unless `is_encoded` says that they have the encoding of the topic.
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
        """Return a slice of the records."""
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
        """Return the batch with the result of validation, and with new values if validation encoded them."""
        return replace(self, keys=keys, invalid=invalid, values=self.values if values is None else values)


def split_batch(batch: SourceBatch, max_records: int, max_bytes: int) -> Iterator[SourceBatch]:
    """Split a batch into parts with at most these records and bytes; a part has at least one record."""
    first = 0
    while first < len(batch):
        chunk = batch.slice_records(first, max_records) if len(batch) > max_records else batch
        while len(chunk) > 1 and sum(map(len, chunk.values)) > max_bytes:
            chunk = batch.slice_records(first, len(chunk) // 2)
        yield chunk
        first += len(chunk)


def concat_batches(batches: Sequence[SourceBatch]) -> SourceBatch:
    """Concatenate validated batches. The result has the position of the first one."""
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
