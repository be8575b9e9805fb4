"""What is read: topics or stored files, their time, their watermark, and which records are repeats."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from penstock.pipelines.plan.checks import named, not_negative, one_of, positive, require

FileFormat: TypeAlias = Literal["json", "parquet", "delta", "csv", "text"]
Encoding: TypeAlias = Literal["json", "avro"]
AheadPolicy: TypeAlias = Literal["quarantine", "accept"]
CheckAction: TypeAlias = Literal["warn", "quarantine", "stop"]


@dataclass(frozen=True)
class Column:
    """A field of the record: its name, its type in Spark's words, and whether it must have a value."""

    name: str
    type: str
    required: bool = False


ADDED = {"added": True}
"""Marks a field that plans once did not have: at its default it is not written, so their fingerprints stay."""


@dataclass(frozen=True)
class Topic:
    """A Kafka topic, whose values are what its contract says; Avro is in the wire format of schema registries."""

    topic: str
    encoding: Encoding = field(default="json", metadata=ADDED)

    def __post_init__(self) -> None:
        named(self.topic, "read")
        one_of(self.encoding, get_args(Encoding), "read.encoding")


@dataclass(frozen=True)
class Files:
    """Stored records under a path of the warehouse or an address."""

    path: str
    format: FileFormat = "delta"

    def __post_init__(self) -> None:
        named(self.path, "read.files")
        one_of(self.format, get_args(FileFormat), "read.format")


Origin: TypeAlias = Topic | Files


@dataclass(frozen=True)
class WatermarkRule:
    """How a partition's watermark follows its records, and when it lets others go on without it.

    `idle_after` None: a silent partition holds the stream back for ever. `max_ahead` None: no future guard.
    """

    bound: int = 0
    idle_after: int | None = None
    advance_when_idle: bool = False
    max_ahead: int | None = None
    ahead: AheadPolicy = "quarantine"

    def __post_init__(self) -> None:
        not_negative(self.bound, "bound")
        if self.idle_after is not None:
            positive(self.idle_after, "idle_after")
        if self.max_ahead is not None:
            not_negative(self.max_ahead, "max_ahead")
        one_of(self.ahead, ("quarantine", "accept"), "ahead")
        needs_idle = self.idle_after is not None or not self.advance_when_idle
        require(
            needs_idle,
            "advance_when_idle",
            "true without idle_after",
            "Say after how long a partition is idle",
        )


@dataclass(frozen=True)
class Deduplication:
    """A record whose id was seen within the horizon (event time, behind the watermark) is set aside."""

    id: tuple[str, ...]
    horizon: int

    def __post_init__(self) -> None:
        require(len(self.id) > 0, "deduplicate.by", "no fields", "Name the fields that identify a record")
        positive(self.horizon, "deduplicate.within")


@dataclass(frozen=True)
class Tombstones:
    """A record without a value says that what its Kafka key names is gone, from the time that Kafka has of it.

    It is a record with that text in the field `key`, true in the field `column`, and nulls in all others.
    """

    column: str
    key: str

    def __post_init__(self) -> None:
        named(self.column, "read.tombstones")
        named(self.key, "read.tombstones")


@dataclass(frozen=True)
class RowCheck:
    """What no good record may be: `broken_when` is SQL over its fields, and true for one that breaks the check.

    With `warn` such records are counted and go on, with `quarantine` they are set aside, with `stop` the stream
    ends before their batch is decided.
    """

    name: str
    broken_when: str
    action: CheckAction

    def __post_init__(self) -> None:
        named(self.name, "checks.name")
        named(self.broken_when, "checks.broken_when")
        one_of(self.action, ("warn", "quarantine", "stop"), "checks.action")


MOST_CHECKS = 60
"""Checks of one input: what a record breaks is a number with a bit for each."""


@dataclass(frozen=True)
class Source:
    """One input: where it comes from, the contract of its values, and its time."""

    name: str
    origin: Origin
    columns: tuple[Column, ...]
    event_time: str
    watermark: WatermarkRule = WatermarkRule()
    deduplication: Deduplication | None = None
    checks: tuple[RowCheck, ...] = field(default=(), metadata=ADDED)
    tombstones: Tombstones | None = field(default=None, metadata=ADDED)
    """What records without a value say; without it they are set aside."""

    def __post_init__(self) -> None:
        named(self.name, "read")
        names = [check.name for check in self.checks]
        require(len(set(names)) == len(names), "checks", "two have one name", "Give each a name of its own")
        require(len(names) <= MOST_CHECKS, "checks", len(names), f"Give an input {MOST_CHECKS} at most")
        known = {column.name for column in self.columns}
        require(self.event_time in known, "event_time", self.event_time, f"Name a field: {listed(known)}")
        for name in self.deduplication.id if self.deduplication else ():
            require(name in known, "deduplicate.by", name, f"Name a field: {listed(known)}")
        for name in (self.tombstones.key, self.tombstones.column) if self.tombstones else ():
            require(name in known, "read.tombstones", name, f"Name a field: {listed(known)}")
        fix = "Leave one of them out: a record without a value has no id"
        both = self.tombstones is not None and self.deduplication is not None
        require(not both, "read.tombstones", "given beside deduplicate", fix)


def listed(names: set[str]) -> str:
    """List names for a sentence."""
    return ", ".join(sorted(names))
