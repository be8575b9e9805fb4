"""Records in flight together: sent at once, acknowledged in the ledger at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.ingestion.ledger import Runs
from penstock.ingestion.producer.batch import Batch


@dataclass(slots=True)
class Chunk:
    """Consecutive records, the target of each, and what is known of their offsets.

    `waiting` counts the targets that have not answered for all of their records.
    """

    first: int
    batch: Batch
    lanes: Sequence[int]
    keys: Sequence[bytes | None]
    runs: Runs = field(default_factory=dict)
    waiting: int = 0

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return sum(map(len, self.batch.values))

    def places(self, lane: int) -> list[int]:
        """Return which of the records go to a target, in order."""
        return [place for place, other in enumerate(self.lanes) if other == lane]

    def expected(self, lane: int) -> list[tuple[bytes | None, bytes]]:
        """Return key and value of what goes to a target, in order."""
        return [(self.keys[place], self.batch.values[place]) for place in self.places(lane)]
