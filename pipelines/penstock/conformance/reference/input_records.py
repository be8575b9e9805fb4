"""What goes in: records with their addresses, in batches with their clocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

Instant: TypeAlias = float
"""Milliseconds, UTC; `inf` and `-inf` stand for the ends of time."""

MIN_TIMESTAMP: Instant = -inf
MAX_TIMESTAMP: Instant = inf

RecordAddress: TypeAlias = tuple[str, int, int]
"""Source, partition, offset."""


@dataclass(frozen=True)
class InputRecord:
    """One record as it was read. `error` says why it could not be understood; then its fields do not count."""

    source: str
    partition: int
    offset: int
    fields: Mapping[str, Any]
    error: str | None = None

    @property
    def address(self) -> RecordAddress:
        """Return where it is."""
        return (self.source, self.partition, self.offset)


@dataclass(frozen=True)
class InputBatch:
    """What one batch reads, and its clock. A batch without records is a tick.

    `partitions` are those that exist, whether or not they brought records. `watermark` puts one in place of the
    one that the records would make; `ends` says that nothing comes after this batch; `unread` are
    partitions of which records may have waited to be read.
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
    """A record that counts: its fields after the steps, its key and its event time."""

    key: tuple[Any, ...]
    time: int
    address: RecordAddress
    fields: Mapping[str, Any]
    window: tuple[Instant, Instant] | None = None
    """The window of the pane that it comes from, where it comes from another stage."""
    is_retraction: bool = False
    """Whether it is the news that such an element is gone."""

    def is_same_element(self, other: "StageElement") -> bool:
        """Tell whether two are one element, that came and that is taken back."""
        return (self.key, self.window, self.fields) == (other.key, other.window, other.fields)
