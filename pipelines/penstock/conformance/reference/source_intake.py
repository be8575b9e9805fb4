"""Step 1 of a batch: quarantine and deduplication."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.conformance.reference.input_records import MAX_TIMESTAMP, InputBatch, InputRecord, Instant
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.conformance.reference.output_rows import PartitionCounts, QuarantinedRow
from penstock.conformance.reference.watermark import SourceWatermark
from penstock.engine.plan.sources import PlanSource


@dataclass
class SourceIntake:
    """Reads the records of one source."""

    source: PlanSource
    watermark: SourceWatermark
    seen_ids: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def accept(
        self, batch: InputBatch, counts_by_partition: dict[tuple[str, int], PartitionCounts]
    ) -> tuple[list[InputRecord], list[QuarantinedRow]]:
        """Return the accepted records in order, and the quarantined ones."""
        self.watermark.mark_active(
            (p for s, p in batch.unread_partitions if s == self.source.name), batch.clock
        )
        self.watermark.add_partitions((p for s, p in batch.partitions if s == self.source.name), batch.clock)
        accepted: list[InputRecord] = []
        quarantined: list[QuarantinedRow] = []
        for record in sort_source_records(batch.records, self.source.name):
            counts = counts_by_partition.setdefault((record.source, record.partition), PartitionCounts())
            counts.read += 1
            reason = self.find_quarantine_reason(record, batch.clock)
            self.update_watermark(record, batch.clock, reason)
            if reason is not None:
                counts.quarantined += 1
                quarantined.append(QuarantinedRow(record.address, reason, batch.id))
            elif self.is_duplicate(record):
                counts.duplicate += 1
            else:
                accepted.append(record)
        return accepted, quarantined

    def find_quarantine_reason(self, record: InputRecord, clock: int) -> str | None:
        """Return the reason to quarantine the record, if there is one."""
        if record.error is not None:
            return record.error
        time = record.fields.get(self.source.event_time)
        if not isinstance(time, int) or isinstance(time, bool):
            return "no_event_time"
        is_future_quarantined = (
            self.watermark.is_too_far_ahead(time, clock)
            and self.source.watermark.future_records == "quarantine"
        )
        return "future_event_time" if is_future_quarantined else None

    def update_watermark(self, record: InputRecord, clock: int, reason: str | None) -> None:
        """Let the record move the watermark, unless it is invalid or too far in the future."""
        time = None if reason is not None else record.fields[self.source.event_time]
        if time is not None and self.watermark.is_too_far_ahead(time, clock):
            time = None
        self.watermark.observe_record(record.partition, clock, time)

    def is_duplicate(self, record: InputRecord) -> bool:
        """Tell whether the record's id was seen before, and remember it. An id with a null is never a duplicate."""
        deduplication = self.source.deduplication
        if deduplication is None:
            return False
        identity = canonicalize(tuple(record.fields.get(name) for name in deduplication.by))
        if None in identity:
            return False
        is_seen = identity in self.seen_ids
        self.seen_ids.setdefault(identity, record.fields[self.source.event_time])
        return is_seen

    def expire_ids(self, watermark: Instant) -> None:
        """Drop ids that are further behind the watermark than the horizon."""
        deduplication = self.source.deduplication
        horizon = MAX_TIMESTAMP if deduplication is None else deduplication.within
        self.seen_ids = {
            identity: time for identity, time in self.seen_ids.items() if time + horizon > watermark
        }


def sort_source_records(records: Iterable[InputRecord], source: str) -> list[InputRecord]:
    """Return the records of one source by partition and offset."""
    return sorted(
        (record for record in records if record.source == source), key=lambda record: record.address
    )
