"""The account of a batch: what became of each record it read."""

from dataclasses import dataclass

RECORD_FATES = ("accepted", "late", "quarantined", "duplicate", "filtered")
"""The fates of a record. Every record that a batch reads has exactly one."""
ACCOUNT_COUNTS = ("read", *RECORD_FATES)
"""The counts of an account."""


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
    accepted: int
    late: int
    quarantined: int
    duplicate: int
    filtered: int = 0

    @property
    def is_balanced(self) -> bool:
        """Whether every record read is counted exactly once."""
        return self.read == self.accepted + self.late + self.quarantined + self.duplicate + self.filtered
