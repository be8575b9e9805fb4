"""What the archive's two tables hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from penstock.pipelines.tables.columns import TIMESTAMP

RECORD = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
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
"""A record as the broker has it; a value of null is a record without one, which deletes its key by compaction."""

LEDGER = pa.schema(
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
        pa.field("batch_clock", TIMESTAMP),
    ]
)
"""What a batch took from a partition, offsets [start, end): so many records, and the offsets that hold none."""


@dataclass(frozen=True)
class Gap:
    """Offsets `first` to `last` of a partition that no record has, and why."""

    first: int
    last: int
    reason: str


@dataclass
class Taken:
    """What was read from one partition, offsets [start, end)."""

    start: int
    end: int
    messages: list[Message] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def record_rows(taken: Mapping[int, Taken], batch_id: int) -> pa.Table:
    """Return the records of a batch by partition and offset."""
    rows = [
        _record(partition, message) for partition in sorted(taken) for message in taken[partition].messages
    ]
    columns = list(zip(*rows, strict=True)) or [()] * (len(RECORD) - 1)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, RECORD, strict=False)]
    return pa.table([*arrays, pa.array([batch_id] * len(rows), pa.int64())], schema=RECORD)


def ledger_rows(topic: str, taken: Mapping[int, Taken], batch_id: int, clock: int) -> pa.Table:
    """Return what a batch took from each partition."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "start": part.start,
            "end": part.end,
            "records": len(part.messages),
            "gaps": [vars(gap) for gap in part.gaps],
            "batch_id": batch_id,
            "batch_clock": clock * 1_000,
        }
        for partition, part in sorted(taken.items())
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER)


def _record(partition: int, message: Message) -> tuple[Any, ...]:
    kind, at = message.timestamp()
    named = "create" if kind == TIMESTAMP_CREATE_TIME else "append"
    key, value = message.key(), message.value()
    return partition, message.offset(), at * 1_000, named, key, value, _headers(message)


def _headers(message: Message) -> Sequence[Mapping[str, Any]]:
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return [
        {"name": name, "value": value.encode() if isinstance(value, str) else value} for name, value in pairs
    ]
