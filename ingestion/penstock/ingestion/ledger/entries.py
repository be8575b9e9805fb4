"""What a delivery ledger writes down.

Sequences count the producer's records from 0. A *target* is a partition of the topic, or of its dead-letter
topic; a session numbers its targets, and everything after it refers to them by that number.
"""

from typing import Any

import msgspec


class Session(msgspec.Struct, tag="session", array_like=True, frozen=True):
    """A producer began, or a new segment did: all that a reader needs to know of what came before.

    `ends[t]` is the last offset of target t that cannot hold an unacknowledged record of this producer, `source`
    describes where the records come from, `last` is the intent with which the next session continues, and `route`
    names what decides where a record goes.
    """

    targets: list[tuple[str, int]]
    ends: list[int]
    reached: int
    source: str
    last: "Intent | None"
    at_ms: int
    route: str = ""


class Intent(msgspec.Struct, tag="intent", array_like=True, frozen=True):
    """These are about to be sent; reading the source from `position` gives `skip` others, then them again.

    Reading it from `after` gives what follows them; None where only the first way leads there.
    """

    first: int
    count: int
    position: Any
    skip: int
    at_ms: int
    after: Any = None


class Acknowledged(msgspec.Struct, tag="acknowledged", array_like=True, frozen=True):
    """These records are in the topic: record `first + i` went to target `lanes[i]`.

    `runs[t]` lists offset and length of what target t took, in the order of the sequences.
    """

    first: int
    count: int
    lanes: bytes
    runs: dict[int, list[tuple[int, int]]]
    at_ms: int


class Abandoned(msgspec.Struct, tag="abandoned", array_like=True, frozen=True):
    """Nobody can send these again, because their source cannot repeat them: they may be in the topic or not."""

    first: int
    count: int
    at_ms: int


class Closed(msgspec.Struct, tag="closed", array_like=True, frozen=True):
    """The producer ended in order: nothing was in flight."""

    at_ms: int


Entry = Session | Intent | Acknowledged | Abandoned | Closed
