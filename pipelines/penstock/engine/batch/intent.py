"""The intent of a batch: what it will do, recorded before it has any effect."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

BatchKind = Literal["data", "tick"]


@dataclass(frozen=True)
class OffsetRange:
    """Offsets [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """The partition's name, the key of its watermark."""
        return partition_name(self.topic, self.partition)


@dataclass(frozen=True)
class BatchIntent:
    """The clock of a batch, its records, and the epoch of its writer.

    A repeated batch takes the clock from here. `spark_batch` is Spark's number of a batch with data; ticks have
    none, so the two numbers differ. `watermark` replaces the one that the records would produce: MAX_TIMESTAMP_MS
    ends a bounded input. `lookups` are the versions of the tables that lookups read. `unread` names partitions that
    may hold records that were not read: they count as active at this batch.
    """

    batch_id: int
    kind: BatchKind
    clock: int
    epoch: int
    ranges: tuple[OffsetRange, ...] = ()
    spark_batch: int | None = None
    watermark: int | None = None
    lookups: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """Describe the batch and its records."""
        range_texts = [
            f"{offset_range.name} {offset_range.start} to {offset_range.end}"
            for offset_range in self.ranges
            if offset_range.end > offset_range.start
        ]
        return f"batch {self.batch_id}" + (f", offsets {', '.join(range_texts)}" if range_texts else "")

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data."""
        return asdict(self)

    def has_same_input(self, other: "BatchIntent") -> bool:
        """Whether both are about the same records."""
        return (self.kind, self.spark_batch, self.ranges) == (other.kind, other.spark_batch, other.ranges)


def parse_intent(plain_intent: Mapping[str, Any]) -> BatchIntent:
    """Parse an intent."""
    ranges = tuple(OffsetRange(**entry) for entry in plain_intent["ranges"])
    return BatchIntent(**{**plain_intent, "ranges": ranges, "unread": tuple(plain_intent.get("unread", ()))})


def empty_range_at(name: str, offset: int) -> OffsetRange:
    """Return the empty range at an offset of a partition, given by name."""
    topic, _, number = name.rpartition("/")
    return OffsetRange(topic, int(number), offset, offset)


def partition_name(topic: str, partition: int) -> str:
    """Return the name of a partition."""
    return f"{topic}/{partition}"
