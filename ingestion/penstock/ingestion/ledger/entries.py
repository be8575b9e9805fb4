"""The entries of a delivery ledger.

Sequences count the records of the producer from 0. A *target* is a partition of the topic, or of its dead-letter
topic. A session numbers its targets, and all later entries refer to them by that number.
"""

from typing import Any

import msgspec


class ProducerSession(msgspec.Struct, tag="session", array_like=True, frozen=True):
    """The start of a producer or of a segment, with the state that readers need from before.

    `last_offsets[t]` is an offset of target t up to which no unacknowledged record of this producer can be.
    `source` describes the source of the records, `last_intent` is the intent after which the next session
    continues, and `partitioner_name` names the partitioner. `topic_ids` and `cluster_id`
    identify the topics; sessions of version 0.1.0 have none.
    """

    targets: list[tuple[str, int]]
    last_offsets: list[int]
    acknowledged_until: int
    source: str
    last_intent: "DeliveryIntent | None"
    at_ms: int
    partitioner_name: str = ""
    topic_ids: dict[str, str] = {}
    cluster_id: str = ""


class DeliveryIntent(msgspec.Struct, tag="intent", array_like=True, frozen=True):
    """Records that are about to be sent. Reading the source at `position` yields `skip_records` others, then these.

    Reading the source at `position_after` yields the records that follow. It is None if only `position` leads
    there.
    """

    first_sequence: int
    record_count: int
    position: Any
    skip_records: int
    at_ms: int
    position_after: Any = None


class Acknowledgement(msgspec.Struct, tag="acknowledged", array_like=True, frozen=True):
    """Records that are in the topic: record `first_sequence + i` went to target `target_ids[i]`.

    `offset_runs[t]` lists the (first offset, length) runs of target t, ordered by sequence.
    """

    first_sequence: int
    record_count: int
    target_ids: bytes
    offset_runs: dict[int, list[tuple[int, int]]]
    at_ms: int


class Abandonment(msgspec.Struct, tag="abandoned", array_like=True, frozen=True):
    """Records that may or may not be in the topic, and that their source cannot send again."""

    first_sequence: int
    record_count: int
    at_ms: int


class ProducerClosing(msgspec.Struct, tag="closed", array_like=True, frozen=True):
    """The producer closed cleanly: nothing was in flight."""

    at_ms: int


LedgerEntry = ProducerSession | DeliveryIntent | Acknowledgement | Abandonment | ProducerClosing
