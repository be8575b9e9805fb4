"""Dead letters of producers, as quarantined records: the same commands decide about both."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.ingestion.producer.dead_letters import (
    DETAIL_HEADER,
    ORIGINAL_BYTES_HEADER,
    PRODUCER_HEADER,
    REASON_HEADER,
)
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition

UNKNOWN = b"unknown"


def to_quarantined_records(topic: str, dead_letters: Iterable[StoredRecord]) -> Iterator[QuarantinedRecord]:
    """Yield the dead letters of a topic as quarantined records, each refused by its producer."""
    for record in dead_letters:
        headers = record.headers
        reason = headers.get(REASON_HEADER, UNKNOWN).decode("utf-8", "replace")
        detail = headers.get(DETAIL_HEADER, b"").decode("utf-8", "replace")
        producer = headers.get(PRODUCER_HEADER, UNKNOWN).decode("utf-8", "replace")
        yield QuarantinedRecord(
            topic,
            RecordPosition(record.partition, record.offset, "dead-letters"),
            None if record.arrived_ms is None else datetime.fromtimestamp(record.arrived_ms / 1000, UTC),
            record.key,
            record.value,
            f"{reason} ({detail})" if detail else reason,
            ((f"producer {producer}", ""),),
            is_truncated=ORIGINAL_BYTES_HEADER in headers,
        )
