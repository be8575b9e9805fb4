"""The addresses of records that were replayed, so that a stream that reads them later excludes the originals."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from penstock.engine.batch.excluded_records import ExcludedRecord, OffsetRanges
from penstock.quality.quarantine.decisions import DecisionLog

ReplayedOffsets = Mapping[int, Sequence[int]]
"""The replayed offsets of each partition, in the order of decisions."""


class ReplayedRecords:
    """Looks up replayed records in a folder of decision logs. A log is read again when it has grown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, ranges: OffsetRanges) -> Sequence[ExcludedRecord]:
        """Return the replayed records of these ranges."""
        return [
            ExcludedRecord(
                offset_range.topic,
                offset_range.partition,
                offset,
                "a record with a decision",
                "replayed",
            )
            for offset_range in ranges
            for offset in self._offsets_of(offset_range.topic).get(offset_range.partition, ())
            if offset_range.start <= offset < offset_range.end
        ]

    def _offsets_of(self, topic: str) -> ReplayedOffsets:
        path = self._folder / f"{topic}.jsonl"
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return {}
        return _read_offsets(path, size)


@lru_cache(maxsize=64)
def _read_offsets(path: Path, _size: int) -> ReplayedOffsets:
    """Read a decision log. The log only grows, so its size is a cache key."""
    offsets_by_partition: dict[int, list[int]] = defaultdict(list)
    for decision in DecisionLog(path).read_all():
        if decision.fate == "replayed":
            offsets_by_partition[decision.partition].append(decision.offset)
    return offsets_by_partition
