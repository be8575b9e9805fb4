"""Step 1 of a batch: which records are understood, and which are repeats."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.plan.source import Source
from penstock.pipelines.reference.answers import Account, Quarantined
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.records import END, Batch, Instant, Record
from penstock.pipelines.reference.watermark import SourceWatermark


@dataclass
class Intake:
    """Reads the records of one source."""

    source: Source
    watermark: SourceWatermark
    seen: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def accept(
        self, batch: Batch, accounts: dict[tuple[str, int], Account]
    ) -> tuple[list[Record], list[Quarantined]]:
        """Return the records that go on, in their order, and those that are quarantined."""
        self.watermark.were_unread((p for s, p in batch.unread if s == self.source.name), batch.clock)
        self.watermark.see_partitions((p for s, p in batch.partitions if s == self.source.name), batch.clock)
        accepted: list[Record] = []
        quarantined: list[Quarantined] = []
        for record in in_order(batch.records, self.source.name):
            account = accounts.setdefault((record.source, record.partition), Account())
            account.read += 1
            reason = self.fault(record, batch.clock)
            self.note(record, batch.clock, reason)
            if reason is not None:
                account.quarantined += 1
                quarantined.append(Quarantined(record.address, reason, batch.id))
            elif self.is_repeat(record):
                account.duplicate += 1
            else:
                accepted.append(record)
        return accepted, quarantined

    def fault(self, record: Record, clock: int) -> str | None:
        """Say why the record is quarantined, if it is."""
        if record.error is not None:
            return record.error
        time = record.fields.get(self.source.event_time)
        if not isinstance(time, int) or isinstance(time, bool):
            return "no_event_time"
        ahead = self.watermark.is_ahead(time, clock) and self.source.watermark.ahead == "quarantine"
        return "ahead_of_clock" if ahead else None

    def note(self, record: Record, clock: int, reason: str | None) -> None:
        """Let the record move the watermark, unless it is broken or too far in the future."""
        time = None if reason is not None else record.fields[self.source.event_time]
        if time is not None and self.watermark.is_ahead(time, clock):
            time = None
        self.watermark.see_record(record.partition, clock, time)

    def is_repeat(self, record: Record) -> bool:
        """Tell whether the record's id was seen before, and remember it. An id with a null is nobody's repeat."""
        rule = self.source.deduplication
        if rule is None:
            return False
        identity = canonical(tuple(record.fields.get(name) for name in rule.id))
        if None in identity:
            return False
        repeat = identity in self.seen
        self.seen.setdefault(identity, record.fields[self.source.event_time])
        return repeat

    def forget(self, watermark: Instant) -> None:
        """Drop ids that are further behind the watermark than the horizon."""
        rule = self.source.deduplication
        horizon = END if rule is None else rule.horizon
        self.seen = {identity: time for identity, time in self.seen.items() if time + horizon > watermark}


def in_order(records: Iterable[Record], source: str) -> list[Record]:
    """Return the records of one source by partition and offset."""
    return sorted(
        (record for record in records if record.source == source), key=lambda record: record.address
    )
