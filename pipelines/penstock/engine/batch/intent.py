"""What a batch is going to do, written down before it has any effect."""

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
        """The partition's name, by which its watermark is kept."""
        return partition_name(self.topic, self.partition)


@dataclass(frozen=True)
class BatchIntent:
    """A batch's clock, its records, and who means to write it.

    A batch that is run again takes the clock from here. `spark_batch` is Spark's own number of a batch with
    data; ticks have none, so the two counts differ. `watermark` stands in place of the one that the records
    would make: NEVER ends a bounded input. `lookups` are the versions of the tables that its steps look into.
    `unread` names partitions of which records may have waited to be read: their silence counts from this batch on.
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
        """The batch and its records, for a person."""
        range_texts = [
            f"{offset_range.name} {offset_range.start} to {offset_range.end}"
            for offset_range in self.ranges
            if offset_range.end > offset_range.start
        ]
        return f"batch {self.batch_id}" + (f", offsets {', '.join(range_texts)}" if range_texts else "")

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    def has_same_input(self, other: "BatchIntent") -> bool:
        """Whether both speak of the same records."""
        return (self.kind, self.spark_batch, self.ranges) == (other.kind, other.spark_batch, other.ranges)


def parse_intent(plain_intent: Mapping[str, Any]) -> BatchIntent:
    """Read an intent back."""
    ranges = tuple(OffsetRange(**entry) for entry in plain_intent["ranges"])
    return BatchIntent(**{**plain_intent, "ranges": ranges, "unread": tuple(plain_intent.get("unread", ()))})


def empty_range_at(name: str, offset: int) -> OffsetRange:
    """The empty range at an offset of a partition, by the partition's name."""
    topic, _, number = name.rpartition("/")
    return OffsetRange(topic, int(number), offset, offset)


def partition_name(topic: str, partition: int) -> str:
    """A partition as one word."""
    return f"{topic}/{partition}"
