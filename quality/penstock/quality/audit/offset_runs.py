"""The offsets that have a record, as runs: a compact form for partitions of any size."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.ledger_rows import TopicPartition, group_by_partition

OffsetRun = tuple[int, int]
"""The first offset of a contiguous run, and its length."""

IntArray = np.ndarray


@dataclass(frozen=True)
class OffsetRuns:
    """The offsets of a partition that have a record, as increasing runs that do not touch."""

    firsts: IntArray
    lengths: IntArray

    def count_before(self, offsets: IntArray) -> IntArray:
        """Return how many records are before each offset."""
        if not len(self.firsts):
            return np.zeros(len(offsets), np.int64)
        cumulative = np.concatenate(([0], np.cumsum(self.lengths)))
        run_index = np.searchsorted(self.firsts, offsets, side="right") - 1
        inside_run = np.clip(
            offsets - self.firsts[np.maximum(run_index, 0)], 0, self.lengths[np.maximum(run_index, 0)]
        )
        counts: IntArray = np.where(run_index < 0, 0, cumulative[np.maximum(run_index, 0)] + inside_run)
        return counts

    def count_in_ranges(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Return how many records are in each range [start, end)."""
        counts: IntArray = self.count_before(ends) - self.count_before(starts)
        return counts

    def find_first_missing(self, start: int, end: int) -> int | None:
        """Return the first offset of a range without a record; None if every offset has one."""
        offset = start
        while offset < end:
            run_index = int(np.searchsorted(self.firsts, offset, side="right")) - 1
            if run_index < 0 or offset >= self.firsts[run_index] + self.lengths[run_index]:
                return offset
            offset = int(self.firsts[run_index] + self.lengths[run_index])
        return None


OffsetRunsByPartition = Mapping[TopicPartition, OffsetRuns]
NO_OFFSETS = OffsetRuns(np.empty(0, np.int64), np.empty(0, np.int64))


def merge_runs(runs: Iterable[OffsetRun]) -> OffsetRuns:
    """Return sorted runs, with touching and overlapping runs merged."""
    merged_pairs: list[list[int]] = []
    for first, length in sorted(runs):
        if merged_pairs and first <= sum(merged_pairs[-1]):
            merged_pairs[-1][1] = max(merged_pairs[-1][1], first + length - merged_pairs[-1][0])
        else:
            merged_pairs.append([first, length])
    pairs = np.asarray(merged_pairs, np.int64).reshape(-1, 2)
    return OffsetRuns(pairs[:, 0], pairs[:, 1])


def check_records_read(
    ledger: pa.Table, runs_by_partition: OffsetRunsByPartition, place_text: str, *, is_compacted: bool = False
) -> Iterator[AuditDifference]:
    """Yield the batches that read another number of records than their offsets have.

    `runs_by_partition` must cover all ranges of the ledger. In a compacted topic, a batch may have read more.
    """
    for partition, rows in group_by_partition(ledger):
        start, end, read, batch = (
            np.asarray(rows.column(name)) for name in ("start", "end", "read", "batch_id")
        )
        held_counts = runs_by_partition.get(partition, NO_OFFSETS).count_in_ranges(start, end)
        for index in np.flatnonzero(held_counts > read if is_compacted else held_counts != read):
            yield AuditDifference(
                f"{partition[0]}/{partition[1]}, batch {batch[index]}",
                f"the batch read {read[index]} records of offsets {start[index]} to {end[index] - 1}; "
                f"{place_text} has {held_counts[index]}",
            )


def has_compacted_records(ledger: pa.Table, runs_by_partition: OffsetRunsByPartition) -> bool:
    """Tell whether a batch read more records than its offsets have now."""
    return any(
        (
            runs_by_partition.get(partition, NO_OFFSETS).count_in_ranges(
                *(np.asarray(rows.column(name)) for name in ("start", "end"))
            )
            < np.asarray(rows.column("read"))
        ).any()
        for partition, rows in group_by_partition(ledger)
    )
