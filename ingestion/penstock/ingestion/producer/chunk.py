"""Records in flight together: sent at once, acknowledged in the ledger at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.ingestion.ledger import OffsetRunsByTarget
from penstock.ingestion.producer.batch import SourceBatch


@dataclass(slots=True)
class Chunk:
    """Consecutive records, the target of each, and what is known of their offsets.

    `waiting` counts the targets that have not answered for all of their records.
    """

    first_sequence: int
    batch: SourceBatch
    target_ids: Sequence[int]
    keys: Sequence[bytes | None]
    offset_runs: OffsetRunsByTarget = field(default_factory=dict)
    pending_targets: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all values."""
        return sum(map(len, self.batch.values))

    def indexes_of(self, target_id: int) -> list[int]:
        """Return which of the records go to a target, in order."""
        return [index for index, record_target in enumerate(self.target_ids) if record_target == target_id]

    def expected_records(self, target_id: int) -> list[tuple[bytes | None, bytes]]:
        """Return key and value of what goes to a target, in order."""
        return [(self.keys[index], self.batch.values[index]) for index in self.indexes_of(target_id)]
