"""What is read: topics or stored files, their time, their watermark, and which records are repeats."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from penstock.engine.plan.validation.argument_checks import (
    require,
    require_name,
    require_non_negative,
    require_one_of,
    require_positive,
)

FileFormat: TypeAlias = Literal["json", "parquet", "delta", "csv", "text"]
TopicEncoding: TypeAlias = Literal["json", "avro"]
FutureSkewPolicy: TypeAlias = Literal["quarantine", "accept"]
CheckAction: TypeAlias = Literal["warn", "quarantine", "stop"]


@dataclass(frozen=True)
class Column:
    """A field of the record: its name, its type in Spark's words, and whether it must have a value."""

    name: str
    type: str
    required: bool = False


OMITTED_AT_DEFAULT = {"added": True}
"""Marks a field that plans once did not have: at its default it is not written, so their fingerprints stay."""


@dataclass(frozen=True)
class TopicOrigin:
    """A Kafka topic, whose values are what its contract says; Avro is in the wire format of schema registries."""

    topic: str
    encoding: TopicEncoding = field(default="json", metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        require_name(self.topic, "read")
        require_one_of(self.encoding, get_args(TopicEncoding), "read.encoding")


@dataclass(frozen=True)
class FileOrigin:
    """Stored records under a path of the warehouse or an address."""

    path: str
    format: FileFormat = "delta"

    def __post_init__(self) -> None:
        require_name(self.path, "read.files")
        require_one_of(self.format, get_args(FileFormat), "read.format")


SourceOrigin: TypeAlias = TopicOrigin | FileOrigin


@dataclass(frozen=True)
class WatermarkStrategy:
    """How a partition's watermark follows its records, and when it lets others go on without it.

    `idle_after` None: a silent partition holds the stream back for ever. `max_future_skew` None: no future guard.
    """

    max_out_of_orderness: int = 0
    idle_after: int | None = None
    advance_when_idle: bool = False
    max_future_skew: int | None = None
    future_records: FutureSkewPolicy = "quarantine"

    def __post_init__(self) -> None:
        require_non_negative(self.max_out_of_orderness, "max_out_of_orderness")
        if self.idle_after is not None:
            require_positive(self.idle_after, "idle_after")
        if self.max_future_skew is not None:
            require_non_negative(self.max_future_skew, "max_future_skew")
        require_one_of(self.future_records, ("quarantine", "accept"), "future_records")
        has_idle_timeout = self.idle_after is not None or not self.advance_when_idle
        require(
            has_idle_timeout,
            "advance_when_idle",
            "true without idle_after",
            "Say after how long a partition is idle",
        )


@dataclass(frozen=True)
class Deduplication:
    """A record whose id was seen within the horizon (event time, behind the watermark) is set aside."""

    by: tuple[str, ...]
    within: int

    def __post_init__(self) -> None:
        require(len(self.by) > 0, "deduplicate.by", "no fields", "Name the fields that identify a record")
        require_positive(self.within, "deduplicate.within")


@dataclass(frozen=True)
class Tombstones:
    """A record without a value says that what its Kafka key names is gone, from the time that Kafka has of it.

    It is a record with that text in the field `key`, true in the field `column`, and nulls in all others.
    """

    column: str
    key: str

    def __post_init__(self) -> None:
        require_name(self.column, "read.tombstones")
        require_name(self.key, "read.tombstones")


@dataclass(frozen=True)
class RowCheck:
    """What no good record may be: `violation_sql` is SQL over its fields, and true for one that breaks the check.

    With `warn` such records are counted and go on, with `quarantine` they are set aside, with `stop` the stream
    ends before their batch is decided.
    """

    name: str
    violation_sql: str
    action: CheckAction

    def __post_init__(self) -> None:
        require_name(self.name, "checks.name")
        require_name(self.violation_sql, "checks.violation_sql")
        require_one_of(self.action, ("warn", "quarantine", "stop"), "checks.action")


MAX_CHECKS_PER_SOURCE = 60
"""Checks of one input: what a record breaks is a number with a bit for each."""


@dataclass(frozen=True)
class PlanSource:
    """One input: where it comes from, the contract of its values, and its time."""

    name: str
    origin: SourceOrigin
    columns: tuple[Column, ...]
    event_time: str
    watermark: WatermarkStrategy = WatermarkStrategy()
    deduplication: Deduplication | None = None
    checks: tuple[RowCheck, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    tombstones: Tombstones | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    """What records without a value say; without it they are set aside."""

    def __post_init__(self) -> None:
        require_name(self.name, "read")
        names = [check.name for check in self.checks]
        require(len(set(names)) == len(names), "checks", "two have one name", "Give each a name of its own")
        require(
            len(names) <= MAX_CHECKS_PER_SOURCE,
            "checks",
            len(names),
            f"Give an input {MAX_CHECKS_PER_SOURCE} at most",
        )
        column_names = {column.name for column in self.columns}
        require(
            self.event_time in column_names,
            "event_time",
            self.event_time,
            f"Name a field: {join_sorted(column_names)}",
        )
        for name in self.deduplication.by if self.deduplication else ():
            require(
                name in column_names, "deduplicate.by", name, f"Name a field: {join_sorted(column_names)}"
            )
        for name in (self.tombstones.key, self.tombstones.column) if self.tombstones else ():
            require(
                name in column_names, "read.tombstones", name, f"Name a field: {join_sorted(column_names)}"
            )
        fix = "Leave one of them out: a record without a value has no id"
        has_both = self.tombstones is not None and self.deduplication is not None
        require(not has_both, "read.tombstones", "given beside deduplicate", fix)


def join_sorted(names: set[str]) -> str:
    """List names for a sentence."""
    return ", ".join(sorted(names))
