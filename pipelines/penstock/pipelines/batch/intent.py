"""What a batch is going to do, written down before it has any effect."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["data", "tick"]


@dataclass(frozen=True)
class Range:
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
class Intent:
    """A batch's clock, its records, and who means to write it.

    A batch that is run again takes the clock from here. `spark_batch` is Spark's own number of a batch with
    data; ticks have none, so the two counts differ. `watermark` stands in place of the one that the records
    would make: NEVER ends a bounded input. `lookups` are the versions of the tables that its steps look into.
    `unread` names partitions of which records may have waited to be read: their silence counts from this batch on.
    """

    batch_id: int
    kind: Kind
    clock: int
    epoch: int
    ranges: tuple[Range, ...] = ()
    spark_batch: int | None = None
    watermark: int | None = None
    lookups: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """The batch and its records, for a person."""
        read = [f"{span.name} {span.start} to {span.end}" for span in self.ranges if span.end > span.start]
        return f"batch {self.batch_id}" + (f", offsets {', '.join(read)}" if read else "")

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    def same_input(self, other: "Intent") -> bool:
        """Whether both speak of the same records."""
        return (self.kind, self.spark_batch, self.ranges) == (other.kind, other.spark_batch, other.ranges)


def intent_from(data: Mapping[str, Any]) -> Intent:
    """Read an intent back."""
    ranges = tuple(Range(**entry) for entry in data["ranges"])
    return Intent(**{**data, "ranges": ranges, "unread": tuple(data.get("unread", ()))})


def range_at(name: str, offset: int) -> Range:
    """The empty range at an offset of a partition, by the partition's name."""
    topic, _, number = name.rpartition("/")
    return Range(topic, int(number), offset, offset)


def partition_name(topic: str, partition: int) -> str:
    """A partition as one word."""
    return f"{topic}/{partition}"
