"""The records in the quarantine of a topic, each once, from all streams."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from penstock.engine import storage
from penstock.quality.errors import DamagedTableError, QuarantineError
from penstock.quality.table_reads import describe_missing_columns, open_table

QUARANTINE_COLUMNS = (
    *("partition", "offset", "batch_clock", "arrived"),
    *("key", "value", "reason", "stream", "contract"),
)
"""The columns that describe a quarantined record."""


RecordOrigin = Literal["topic", "dead-letters"]
"""Whether a position is in a topic, or in the topic of its dead letters."""


class RecordPosition(NamedTuple):
    """The partition and offset of a record, in its topic or in the topic of dead letters."""

    partition: int
    offset: int
    origin: RecordOrigin = "topic"

    @property
    def is_dead_letter(self) -> bool:
        """Whether it is the position of a dead letter."""
        return self.origin == "dead-letters"

    @property
    def in_own_topic(self) -> "RecordPosition":
        """The same partition and offset without the origin: each origin has a log of decisions of its own."""
        return RecordPosition(self.partition, self.offset)

    def __str__(self) -> str:
        prefix = f"{self.origin}/" if self.is_dead_letter else ""
        return f"{prefix}{self.partition}:{self.offset}"


@dataclass(frozen=True)
class QuarantinedRecord:
    """A record with its original bytes and the reason of its quarantine.

    `refusals` holds each stream that rejected it, with the contract version that the stream used. A dead letter has
    its producer there. A dead letter that `is_truncated` has only the first bytes of the record.
    """

    topic: str
    position: RecordPosition
    arrived_at: datetime | None
    key: bytes | None
    value: bytes | None
    reason: str
    refusals: tuple[tuple[str, str], ...]
    is_truncated: bool = False

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that rejected it."""
        return tuple(stream for stream, _ in self.refusals)

    @property
    def contracts(self) -> tuple[str, ...]:
        """The contract versions that rejected it."""
        return tuple(sorted({contract for _, contract in self.refusals}))


def read_quarantine(warehouse: storage.StoragePath, topic: str) -> list[QuarantinedRecord]:
    """Return the quarantined records of a topic, ordered by position; none if the table does not exist."""
    path = warehouse / f"quarantine/{topic}"
    table = open_table(path)
    if table is None:
        return []
    if missing_columns := describe_missing_columns(table, QUARANTINE_COLUMNS):
        raise DamagedTableError(path, missing_columns)
    rows = pa.table(table.to_pyarrow_table())
    order = [(name, "ascending") for name in ("partition", "offset", "batch_clock")]
    return list(_group_by_position(topic, rows.sort_by(order).to_pylist()))


def parse_position(text: str) -> RecordPosition:
    """Parse PARTITION:OFFSET, or dead-letters/PARTITION:OFFSET for a dead letter."""
    origin, separator, numbers = text.rpartition("/")
    partition, _, offset = numbers.partition(":")
    is_number_pair = partition.isdecimal() and offset.isdecimal()
    if not is_number_pair or (separator and origin != "dead-letters"):
        raise QuarantineError(
            f"{text!r} is not an address; write PARTITION:OFFSET, such as 1:4711, "
            "or dead-letters/0:12 for a dead letter"
        )
    return RecordPosition(int(partition), int(offset), "dead-letters" if separator else "topic")


def find_records(
    records: Iterable[QuarantinedRecord], positions: Sequence[RecordPosition], topic: str
) -> list[QuarantinedRecord]:
    """Return the records at these positions. Raises QuarantineError if one is not in quarantine."""
    records_by_position = {record.position: record for record in records}
    for position in positions:
        if position not in records_by_position:
            raise QuarantineError(
                f"{topic} {position} is not in quarantine; `penstock quarantine list {topic}` lists the records"
            )
    return [records_by_position[position] for position in positions]


def _group_by_position(topic: str, rows: Iterable[dict[str, Any]]) -> Iterable[QuarantinedRecord]:
    rows_by_position: dict[RecordPosition, list[dict[str, Any]]] = {}
    for row in rows:
        rows_by_position.setdefault(RecordPosition(row["partition"], row["offset"]), []).append(row)
    for position, record_rows in rows_by_position.items():
        last_row = record_rows[-1]
        refusals = tuple((row["stream"] or "unknown", row["contract"] or "unknown") for row in record_rows)
        yield QuarantinedRecord(
            topic,
            position,
            last_row["arrived"],
            last_row["key"],
            last_row["value"],
            last_row["reason"],
            refusals,
        )
