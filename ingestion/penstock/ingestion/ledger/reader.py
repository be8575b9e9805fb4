"""Reads ledgers: the state of the producer, and the address of each record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from penstock.ingestion.ledger.addresses import DeliveryAddress, OffsetRunsByTarget, unpack_addresses
from penstock.ingestion.ledger.entries import (
    Abandonment,
    Acknowledgement,
    DeliveryIntent,
    LedgerEntry,
    ProducerSession,
)
from penstock.ingestion.ledger.journal import read_entries


@dataclass(slots=True)
class DeliveryLedgerState:
    """The state of a producer: every record below `acknowledged_until` is settled, pending intents are in doubt."""

    targets: list[tuple[str, int]] = field(default_factory=list)
    last_offsets: list[int] = field(default_factory=list)
    acknowledged_until: int = 0
    source: str = ""
    partitioner_name: str = ""
    pending_intents: list[DeliveryIntent] = field(default_factory=list)
    last_intent: DeliveryIntent | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str = ""

    def apply_entry(self, entry: LedgerEntry) -> None:
        """Update the state with one entry."""
        if isinstance(entry, ProducerSession):
            self.targets, self.last_offsets, self.acknowledged_until = (
                list(entry.targets),
                list(entry.last_offsets),
                entry.acknowledged_until,
            )
            self.source, self.last_intent, self.partitioner_name = (
                entry.source,
                entry.last_intent,
                entry.partitioner_name,
            )
            self.topic_ids, self.cluster_id = entry.topic_ids, entry.cluster_id
        elif isinstance(entry, DeliveryIntent):
            self.pending_intents.append(entry)
            self.last_intent = entry
        elif isinstance(entry, Acknowledgement | Abandonment):
            self.acknowledged_until = entry.first_sequence + entry.record_count
            self.pending_intents = [
                intent for intent in self.pending_intents if intent.first_sequence >= self.acknowledged_until
            ]
            if isinstance(entry, Acknowledgement):
                self._advance_last_offsets(entry.offset_runs)

    def _advance_last_offsets(self, runs: OffsetRunsByTarget) -> None:
        for target_id, target_runs in runs.items():
            first, length = target_runs[-1]
            self.last_offsets[target_id] = first + length - 1


def list_segments(directory: Path) -> list[Path]:
    """Return the segments of a ledger, oldest first."""
    return sorted(directory.glob("*.ledger"))


def read_ledger_state(directory: Path) -> DeliveryLedgerState:
    """Return the state of a producer; safe while the producer runs."""
    return replay_segments(list_segments(directory))


def replay_segments(paths: Sequence[Path]) -> DeliveryLedgerState:
    """Return the state at the end of the segments. The last segment contains everything that is needed."""
    state = DeliveryLedgerState()
    for path in paths[-1:]:
        for entry in read_entries(path):
            state.apply_entry(entry)
    return state


def read_addresses(
    directory: Path, first_sequence: int = 0, record_count: int | None = None
) -> Iterator[DeliveryAddress]:
    """Yield the addresses of records from `first_sequence` on, in order; safe while the producer runs.

    Records that are unacknowledged, abandoned or older than the retention of the ledger have no address and are
    skipped.
    """
    end = float("inf") if record_count is None else first_sequence + record_count
    targets: list[tuple[str, int]] = []
    for path in _skip_segments_before(list_segments(directory), first_sequence):
        for entry in read_entries(path):
            if isinstance(entry, ProducerSession):
                targets = entry.targets
            elif isinstance(entry, Acknowledgement) and entry.first_sequence >= end:
                return
            elif (
                isinstance(entry, Acknowledgement)
                and entry.first_sequence + entry.record_count > first_sequence
            ):
                yield from (
                    address
                    for address in unpack_addresses(entry, targets)
                    if first_sequence <= address.sequence < end
                )


def _skip_segments_before(paths: Sequence[Path], first: int) -> Sequence[Path]:
    """Skip the segments that end before a sequence. A segment ends where the next one starts."""
    skipped = sum(1 for _, next_path in pairwise(paths) if _segment_start_sequence(next_path) <= first)
    return paths[skipped:]


def _segment_start_sequence(segment: Path) -> int:
    session = next(read_entries(segment))
    assert isinstance(session, ProducerSession)
    return session.acknowledged_until
