"""Reads the tail of a topic to find out which records arrived before a kill.

The broker appends the records of one idempotent producer to a partition in the order of sending. Of the records in
flight at a kill, the ones that arrived are therefore the first ones of each partition. They are found by comparing
the tail with the records in flight, in order.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.producer.kafka_io import (
    TargetPartitions,
    WaitCallback,
    ignore_wait,
    read_offset_ranges,
)

# The number of broker requests before the tail of a killed producer is read, and the pause between them in seconds.
SETTLE_POLLS, SETTLE_PAUSE_S = 20, 0.05
_FETCH_TIMEOUT_S = 0.05


class TailRecord(NamedTuple):
    """One record of the tail of a partition."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


def settle_offset_ranges(
    reader: Consumer, targets: TargetPartitions, on_wait: WaitCallback = ignore_wait
) -> list[tuple[int, int]]:
    """Return the offset ranges after the broker has served all requests of a killed process.

    The broker still serves requests that a killed process handed to its sockets. Each request here queues behind
    them. A dead connection has at most five requests, which are served one at a time.
    """
    for _ in range(SETTLE_POLLS):
        ranges = read_offset_ranges(reader, targets, on_wait)
        reader.poll(SETTLE_PAUSE_S)
    return ranges


def read_records(
    reader: Consumer,
    topic: str,
    partition: int,
    first_offset: int,
    last_offset: int,
    on_wait: WaitCallback = ignore_wait,
) -> list[TailRecord]:
    """Return the records of a partition from `first_offset` to `last_offset`, both included.

    Waits for the broker without a timeout, and calls `on_wait` when no record arrives.
    """
    records: list[TailRecord] = []
    if last_offset < first_offset:
        return records
    reader.assign([TopicPartition(topic, partition, first_offset)])
    next_offset = first_offset
    while next_offset <= last_offset:
        messages = reader.consume(2_000, timeout=_FETCH_TIMEOUT_S)
        if not messages:
            on_wait()
        for message in messages:
            offset = _read_offset(message)
            next_offset = max(next_offset, offset if message.error() is not None else offset + 1)
            if message.error() is None and offset <= last_offset:
                records.append(TailRecord(offset, message.key(), message.value(), _read_headers(message)))
    reader.unassign()
    return records


def match_offsets(expected: Sequence[tuple[bytes | None, bytes]], tail: Sequence[TailRecord]) -> list[int]:
    """Return the offsets of the leading `expected` records in the tail, in order, with gaps allowed."""
    offsets: list[int] = []
    for record in tail:
        if len(offsets) == len(expected):
            break
        key, value = expected[len(offsets)]
        if record.value == value and (record.key or b"") == (key or b""):
            offsets.append(record.offset)
    return offsets


def check_topic_tail(
    targets: TargetPartitions, last_offsets: Sequence[int], ranges: Sequence[tuple[int, int]], ledger: str
) -> None:
    """Raise LedgerError if the topic was recreated, or if its tail was deleted."""
    for (topic, partition), last_offset, (start_offset, end_offset) in zip(
        targets, last_offsets, ranges, strict=True
    ):
        partition_name = f"{topic} partition {partition}"
        if end_offset <= last_offset:
            raise LedgerError(
                f"The ledger {ledger} has offset {last_offset} of {partition_name}, but the partition "
                f"ends at {end_offset - 1}. "
                "The topic was recreated or lost records. Use another producer name."
            )
        if start_offset > last_offset + 1:
            raise LedgerError(
                f"The ledger {ledger} needs {partition_name} from offset {last_offset + 1} on, but the partition "
                f"starts at {start_offset}. "
                "Retention deleted the records that would show what arrived. Use another producer name."
            )


def _read_offset(message: Message) -> int:
    error = message.error()
    if error is not None and error.name() != "_PARTITION_EOF":
        raise KafkaException(error)
    offset = message.offset()
    assert offset is not None
    return offset


def _read_headers(message: Message) -> dict[str, bytes]:
    pairs = message.headers() or []
    assert not isinstance(pairs, dict)
    return {name: value.encode() if isinstance(value, str) else value or b"" for name, value in pairs}
