"""The rows of the archive's two tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from penstock.engine.tables.timestamps import TIMESTAMP_TYPE

ARCHIVE_RECORD_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP_TYPE),
        pa.field("timestamp_type", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("value", pa.binary())])),
        ),
        pa.field("batch_id", pa.int64()),
    ]
)
"""A record as the broker has it; a null value is a tombstone, which deletes its key by compaction."""

ARCHIVE_LEDGER_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field(
            "gaps",
            pa.list_(
                pa.struct(
                    [
                        pa.field("first", pa.int64()),
                        pa.field("last", pa.int64()),
                        pa.field("reason", pa.string()),
                    ]
                )
            ),
        ),
        pa.field("batch_id", pa.int64()),
        pa.field("batch_clock", TIMESTAMP_TYPE),
    ]
)
"""What a batch archived of a partition, offsets [start, end): its records, and the offsets without one."""


@dataclass(frozen=True)
class OffsetGap:
    """Offsets `first` to `last` of a partition that have no record, and why."""

    first: int
    last: int
    reason: str


@dataclass
class PartitionSlice:
    """The records read from one partition, offsets [start, end)."""

    start: int
    end: int
    messages: list[Message] = field(default_factory=list)
    gaps: list[OffsetGap] = field(default_factory=list)


def build_record_rows(slices: Mapping[int, PartitionSlice], batch_id: int) -> pa.Table:
    """Return the records of a batch by partition and offset."""
    rows = [
        _to_record_row(partition, message)
        for partition in sorted(slices)
        for message in slices[partition].messages
    ]
    columns = list(zip(*rows, strict=True)) or [()] * (len(ARCHIVE_RECORD_SCHEMA) - 1)
    arrays = [
        pa.array(column, column_field.type)
        for column, column_field in zip(columns, ARCHIVE_RECORD_SCHEMA, strict=False)
    ]
    return pa.table([*arrays, pa.array([batch_id] * len(rows), pa.int64())], schema=ARCHIVE_RECORD_SCHEMA)


def build_ledger_rows(
    topic: str, slices: Mapping[int, PartitionSlice], batch_id: int, clock: int
) -> pa.Table:
    """Return what a batch archived of each partition."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "start": partition_slice.start,
            "end": partition_slice.end,
            "records": len(partition_slice.messages),
            "gaps": [vars(gap) for gap in partition_slice.gaps],
            "batch_id": batch_id,
            "batch_clock": clock * 1_000,
        }
        for partition, partition_slice in sorted(slices.items())
    ]
    return pa.Table.from_pylist(rows, schema=ARCHIVE_LEDGER_SCHEMA)


def _to_record_row(partition: int, message: Message) -> tuple[Any, ...]:
    kind, timestamp_ms = message.timestamp()
    timestamp_type = "create" if kind == TIMESTAMP_CREATE_TIME else "append"
    key, value = message.key(), message.value()
    return (
        partition,
        message.offset(),
        timestamp_ms * 1_000,
        timestamp_type,
        key,
        value,
        _to_header_structs(message),
    )


def _to_header_structs(message: Message) -> Sequence[Mapping[str, Any]]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [
        {"name": name, "value": value.encode() if isinstance(value, str) else value} for name, value in pairs
    ]
