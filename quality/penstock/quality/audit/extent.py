"""Which offsets hold a record: runs of them, small for a partition of any length, and what is counted by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.ingestion.ledger import runs_of
from penstock.quality.audit.chain import Partition, by_partition
from penstock.quality.audit.verdict import Difference

Run = tuple[int, int]
"""The first offset of a stretch without a gap, and its length."""

Ints = np.ndarray


@dataclass(frozen=True)
class Extent:
    """The offsets of one partition that hold a record, as runs that rise and do not touch."""

    firsts: Ints
    lengths: Ints

    def before(self, offsets: Ints) -> Ints:
        """Return how many records lie before each of these offsets."""
        if not len(self.firsts):
            return np.zeros(len(offsets), np.int64)
        held = np.concatenate(([0], np.cumsum(self.lengths)))
        at = np.searchsorted(self.firsts, offsets, side="right") - 1
        inside = np.clip(offsets - self.firsts[np.maximum(at, 0)], 0, self.lengths[np.maximum(at, 0)])
        counted: Ints = np.where(at < 0, 0, held[np.maximum(at, 0)] + inside)
        return counted

    def count(self, starts: Ints, ends: Ints) -> Ints:
        """Return how many records lie in each of these ranges [start, end)."""
        held: Ints = self.before(ends) - self.before(starts)
        return held

    def first_missing(self, start: int, end: int) -> int | None:
        """Return the first offset of a range that no record has; None where all have one."""
        offset = start
        while offset < end:
            at = int(np.searchsorted(self.firsts, offset, side="right")) - 1
            if at < 0 or offset >= self.firsts[at] + self.lengths[at]:
                return offset
            offset = int(self.firsts[at] + self.lengths[at])
        return None


Extents = Mapping[Partition, Extent]
NOTHING = Extent(np.empty(0, np.int64), np.empty(0, np.int64))


def extent_of(runs: Iterable[Run]) -> Extent:
    """Return runs as an extent: in order, and those that touch or overlap as one."""
    merged: list[list[int]] = []
    for first, length in sorted(runs):
        if merged and first <= sum(merged[-1]):
            merged[-1][1] = max(merged[-1][1], first + length - merged[-1][0])
        else:
            merged.append([first, length])
    pairs = np.asarray(merged, np.int64).reshape(-1, 2)
    return Extent(pairs[:, 0], pairs[:, 1])


def runs_in(offsets: Sequence[int]) -> list[Run]:
    """Return offsets that rise as runs."""
    return runs_of(offsets)


def taken(ledger: pa.Table, extents: Extents, where: str, *, compacted: bool = False) -> Iterator[Difference]:
    """Yield the batches that read another number of records than their offsets hold.

    `extents` must reach over all of the ledger's ranges. Of a topic that is compacted a batch may have read more.
    """
    for partition, rows in by_partition(ledger):
        start, end, read, batch = (np.asarray(rows.column(n)) for n in ("start", "end", "read", "batch_id"))
        held = extents.get(partition, NOTHING).count(start, end)
        for at in np.flatnonzero(held > read if compacted else held != read):
            yield Difference(
                f"{partition[0]}/{partition[1]}, batch {batch[at]}",
                f"it read {read[at]} records of offsets {start[at]} to {end[at] - 1}, and {where} has {held[at]}",
            )


def gave_way(ledger: pa.Table, extents: Extents) -> bool:
    """Tell whether any batch read more than its offsets hold now."""
    return any(
        (
            extents.get(partition, NOTHING).count(*(np.asarray(rows.column(n)) for n in ("start", "end")))
            < np.asarray(rows.column("read"))
        ).any()
        for partition, rows in by_partition(ledger)
    )
