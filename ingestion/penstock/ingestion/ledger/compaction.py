"""Compaction of closed ledger segments.

A slow feed writes an intent and an acknowledgement for every few records, about a hundred bytes for each record. A
closed segment no longer needs its intents, and merged addresses take one to two bytes for each record.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.core.files import atomic_path
from penstock.ingestion.ledger.addresses import OffsetRunsByTarget, pack_target_ids, unpack_target_ids
from penstock.ingestion.ledger.entries import (
    Abandonment,
    Acknowledgement,
    DeliveryIntent,
    LedgerEntry,
    ProducerClosing,
    ProducerSession,
)
from penstock.ingestion.ledger.journal import DeliveryJournal, read_entries

MAX_MERGED_RECORDS = 100_000


def compact_segment(path: Path) -> None:
    """Rewrite a closed segment with the same addresses, atomically."""
    with atomic_path(path) as partial:
        compacted = DeliveryJournal(partial)
        for entry in compact_entries(read_entries(path)):
            compacted.append(entry)
        compacted.close()


def compact_entries(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Return fewer entries with the same addresses."""
    pending: list[Acknowledgement] = []
    count = 0
    for entry in entries:
        if isinstance(entry, Acknowledgement) and count < MAX_MERGED_RECORDS:
            pending.append(entry)
            count += entry.record_count
        elif isinstance(entry, ProducerSession | Abandonment | Acknowledgement):
            yield from _merge_acknowledgements(pending)
            pending, count = ([entry], entry.record_count) if isinstance(entry, Acknowledgement) else ([], 0)
            if not pending:
                yield entry
        else:
            assert isinstance(entry, DeliveryIntent | ProducerClosing)
    yield from _merge_acknowledgements(pending)


def _merge_acknowledgements(entries: list[Acknowledgement]) -> Iterator[Acknowledgement]:
    if not entries:
        return
    target_ids: list[int] = []
    merged_runs: OffsetRunsByTarget = {}
    for entry in entries:
        target_ids += unpack_target_ids(entry.target_ids)
        for target_id, target_runs in entry.offset_runs.items():
            _extend_runs(merged_runs.setdefault(target_id, []), target_runs)
    yield Acknowledgement(
        entries[0].first_sequence,
        len(target_ids),
        pack_target_ids(target_ids),
        merged_runs,
        entries[-1].at_ms,
    )


def _extend_runs(runs: list[tuple[int, int]], next_runs: Iterable[tuple[int, int]]) -> None:
    for first, length in next_runs:
        if runs and sum(runs[-1]) == first:
            runs[-1] = (runs[-1][0], runs[-1][1] + length)
        else:
            runs.append((first, length))
