"""The account of a batch: what became of each record it read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PartitionAccount:
    """What became of the records that a batch read from one partition, offsets [start, end).

    `filtered` counts the records that the pipeline's own steps removed before any window.
    """

    topic: str
    partition: int
    start: int
    end: int
    read: int
    folded: int
    late: int
    quarantined: int
    duplicate: int
    filtered: int = 0

    @property
    def is_balanced(self) -> bool:
        """Whether every record read is counted exactly once."""
        return self.read == self.folded + self.late + self.quarantined + self.duplicate + self.filtered
