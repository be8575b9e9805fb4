"""Reading a topic's tail to learn what arrived when nobody was left to be told.

The broker appends what one idempotent producer sends to a partition in the order in which it was sent. So of
the records that were in flight at a kill, those that arrived are, in each partition, the first ones: they are
found by comparing the tail, in order, with what was to be sent.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.producer.client import Targets, Told, offset_ranges, silently

# How often, and how far apart in seconds, the broker is asked before the tail of a killed producer is read.
SETTLE_ROUNDS, SETTLE_PAUSE = 20, 0.05
_GATHER_SECONDS = 0.05


class Found(NamedTuple):
    """One record of a tail."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


def settle(reader: Consumer, targets: Targets, waiting: Told = silently) -> list[tuple[int, int]]:
    """Return the offset ranges once requests that were under way at a kill have been served.

    What a killed process had handed to its sockets is still served by the broker. Each round is a request that
    takes its turn behind them; a connection of a dead process has at most five requests, one served at a time.
    """
    for _ in range(SETTLE_ROUNDS):
        ranges = offset_ranges(reader, targets, waiting)
        reader.poll(SETTLE_PAUSE)
    return ranges


def read_range(
    reader: Consumer, topic: str, partition: int, first: int, last: int, waiting: Told = silently
) -> list[Found]:
    """Return the records of a partition from offset `first` to `last`, both included.

    Waits for the broker for as long as it takes, and tells `waiting` whenever nothing came.
    """
    found: list[Found] = []
    if last < first:
        return found
    reader.assign([TopicPartition(topic, partition, first)])
    reached = first
    while reached <= last:
        messages = reader.consume(2_000, timeout=_GATHER_SECONDS)
        if not messages:
            waiting()
        for message in messages:
            offset = _offset(message)
            reached = max(reached, offset if message.error() is not None else offset + 1)
            if message.error() is None and offset <= last:
                found.append(Found(offset, message.key(), message.value(), _headers(message)))
    reader.unassign()
    return found


def match(expected: Sequence[tuple[bytes | None, bytes]], tail: Sequence[Found]) -> list[int]:
    """Return the offsets of the first of `expected` that are in the tail, in order; others may lie between."""
    offsets: list[int] = []
    for record in tail:
        if len(offsets) == len(expected):
            break
        key, value = expected[len(offsets)]
        if record.value == value and (record.key or b"") == (key or b""):
            offsets.append(record.offset)
    return offsets


def check_tail(targets: Targets, ends: Sequence[int], ranges: Sequence[tuple[int, int]], ledger: str) -> None:
    """Refuse to go on where the topic is not the one that the ledger tells of, or forgot its tail."""
    for (topic, partition), end, (low, high) in zip(targets, ends, ranges, strict=True):
        where = f"{topic} partition {partition}"
        if high <= end:
            raise LedgerError(
                f"the ledger {ledger} knows offset {end} of {where}, which ends at {high - 1}: the topic was "
                "made anew or lost records; begin under another producer name"
            )
        if low > end + 1:
            raise LedgerError(
                f"the ledger {ledger} must read {where} from offset {end + 1}, which begins at {low}: retention "
                "removed what would show which records arrived; begin under another producer name"
            )


def _offset(message: Message) -> int:
    error = message.error()
    if error is not None and error.name() != "_PARTITION_EOF":
        raise KafkaException(error)
    offset = message.offset()
    assert offset is not None
    return offset


def _headers(message: Message) -> dict[str, bytes]:
    pairs = message.headers() or []
    assert not isinstance(pairs, dict)
    return {name: value.encode() if isinstance(value, str) else value or b"" for name, value in pairs}
