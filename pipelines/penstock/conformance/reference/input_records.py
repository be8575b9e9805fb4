"""Input records with their addresses, in batches with their clocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

Instant: TypeAlias = float
"""Milliseconds in UTC; `inf` and `-inf` are the ends of time."""

MIN_TIMESTAMP: Instant = -inf
MAX_TIMESTAMP: Instant = inf

RecordAddress: TypeAlias = tuple[str, int, int]
"""Source, partition, offset."""


@dataclass(frozen=True)
class InputRecord:
    """One record as read. `error` says why it is invalid; its fields are then ignored."""

    source: str
    partition: int
    offset: int
    fields: Mapping[str, Any]
    error: str | None = None

    @property
    def address(self) -> RecordAddress:
        """Return its address."""
        return (self.source, self.partition, self.offset)


@dataclass(frozen=True)
class InputBatch:
    """The records of one batch, and its clock. A batch without records is a tick.

    `partitions` are the existing ones, with or without records. `watermark` overrides the watermark of the
    records. `ends` marks the last batch. `unread` are partitions that may have had unread records.
    """

    id: int
    clock: int
    records: tuple[InputRecord, ...] = ()
    partitions: frozenset[tuple[str, int]] = frozenset()
    watermark: Instant | None = None
    is_last: bool = False
    unread_partitions: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True)
class StageElement:
    """A valid record: its fields after the steps, its key and its event time."""

    key: tuple[Any, ...]
    time: int
    address: RecordAddress
    fields: Mapping[str, Any]
    window: tuple[Instant, Instant] | None = None
    """The window of its pane, if it comes from another stage."""
    is_retraction: bool = False
    """Whether it retracts such an element."""

    def is_same_element(self, other: "StageElement") -> bool:
        """Tell whether two are the same element, inserted and retracted."""
        return (self.key, self.window, self.fields) == (other.key, other.window, other.fields)
