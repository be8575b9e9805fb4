"""Chunks: records that are sent together and acknowledged in the ledger together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.ingestion.ledger import OffsetRunsByTarget
from penstock.ingestion.producer.batch import SourceBatch


@dataclass(slots=True)
class Chunk:
    """Consecutive records, the target of each, and the offsets known so far.

    `pending_targets` counts the targets that have not acknowledged all of their records.
    """

    first_sequence: int
    batch: SourceBatch
    target_ids: Sequence[int]
    keys: Sequence[bytes | None]
    offset_runs: OffsetRunsByTarget = field(default_factory=dict)
    pending_targets: int = 0

    @property
    def size_bytes(self) -> int:
        """The size of all values."""
        return sum(map(len, self.batch.values))

    def indexes_of(self, target_id: int) -> list[int]:
        """Return the indexes of the records for a target, in order."""
        return [index for index, record_target in enumerate(self.target_ids) if record_target == target_id]

    def expected_records(self, target_id: int) -> list[tuple[bytes | None, bytes]]:
        """Return the key and value of each record for a target, in order."""
        return [(self.keys[index], self.batch.values[index]) for index in self.indexes_of(target_id)]
