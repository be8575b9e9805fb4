"""What a delivery ledger writes down.

Sequences count the producer's records from 0. A *target* is a partition of the topic, or of its dead-letter
topic; a session numbers its targets, and everything after it refers to them by that number.
"""

from typing import Any

import msgspec


class ProducerSession(msgspec.Struct, tag="session", array_like=True, frozen=True):
    """A producer began, or a new segment did: all that a reader needs to know of what came before.

    `ends[t]` is the last offset of target t that cannot hold an unacknowledged record of this producer, `source`
    describes where the records come from, `last` is the intent with which the next session continues, and `route`
    names what decides where a record goes.
    """

    targets: list[tuple[str, int]]
    last_offsets: list[int]
    acknowledged_until: int
    source: str
    last_intent: "DeliveryIntent | None"
    at_ms: int
    partitioner_name: str = ""


class DeliveryIntent(msgspec.Struct, tag="intent", array_like=True, frozen=True):
    """These are about to be sent; reading the source from `position` gives `skip` others, then them again.

    Reading it from `after` gives what follows them; None where only the first way leads there.
    """

    first_sequence: int
    record_count: int
    position: Any
    skip_records: int
    at_ms: int
    position_after: Any = None


class Acknowledgement(msgspec.Struct, tag="acknowledged", array_like=True, frozen=True):
    """These records are in the topic: record `first + i` went to target `lanes[i]`.

    `runs[t]` lists offset and length of what target t took, in the order of the sequences.
    """

    first_sequence: int
    record_count: int
    target_ids: bytes
    offset_runs: dict[int, list[tuple[int, int]]]
    at_ms: int


class Abandonment(msgspec.Struct, tag="abandoned", array_like=True, frozen=True):
    """Nobody can send these again, because their source cannot repeat them: they may be in the topic or not."""

    first_sequence: int
    record_count: int
    at_ms: int


class ProducerClosing(msgspec.Struct, tag="closed", array_like=True, frozen=True):
    """The producer ended in order: nothing was in flight."""

    at_ms: int


LedgerEntry = ProducerSession | DeliveryIntent | Acknowledgement | Abandonment | ProducerClosing
