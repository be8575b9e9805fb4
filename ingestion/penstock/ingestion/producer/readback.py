"""Reading a topic's tail to learn what arrived when nobody was left to be told.

The broker appends what one idempotent producer sends to a partition in the order in which it was sent. So of
the records that were in flight at a kill, those that arrived are, in each partition, the first ones: they are
found by comparing the tail, in order, with what was to be sent.
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

# How often, and how far apart in seconds, the broker is asked before the tail of a killed producer is read.
SETTLE_POLLS, SETTLE_PAUSE_S = 20, 0.05
_FETCH_TIMEOUT_S = 0.05


class TailRecord(NamedTuple):
    """One record of a tail."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


def settle_offset_ranges(
    reader: Consumer, targets: TargetPartitions, on_wait: WaitCallback = ignore_wait
) -> list[tuple[int, int]]:
    """Return the offset ranges once requests that were under way at a kill have been served.

    What a killed process had handed to its sockets is still served by the broker. Each round is a request that
    takes its turn behind them; a connection of a dead process has at most five requests, one served at a time.
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
    """Return the records of a partition from offset `first` to `last`, both included.

    Waits for the broker for as long as it takes, and tells `waiting` whenever nothing came.
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
    """Return the offsets of the first of `expected` that are in the tail, in order; others may lie between."""
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
    """Refuse to go on where the topic is not the one that the ledger tells of, or forgot its tail."""
    for (topic, partition), last_offset, (start_offset, end_offset) in zip(
        targets, last_offsets, ranges, strict=True
    ):
        partition_name = f"{topic} partition {partition}"
        if end_offset <= last_offset:
            raise LedgerError(
                f"the ledger {ledger} knows offset {last_offset} of {partition_name}, "
                f"which ends at {end_offset - 1}: "
                "the topic was made anew or lost records; begin under another producer name"
            )
        if start_offset > last_offset + 1:
            raise LedgerError(
                f"the ledger {ledger} must read {partition_name} from offset {last_offset + 1}, "
                f"which begins at {start_offset}: "
                "retention removed what would show which records arrived; begin under another producer name"
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
