"""Sources of a plan: topics or files, with event time, watermark, deduplication and checks."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from penstock.engine.definition.argument_checks import (
    require,
    require_name,
    require_non_negative,
    require_one_of,
    require_positive,
)
from penstock.engine.definition.stored_fields import OMITTED_AT_DEFAULT
from penstock.ingestion.contracts.contract_modes import DeletePolicy, EnvelopeFields, UnknownFieldPolicy

FileFormat: TypeAlias = Literal["json", "parquet", "delta", "csv", "text"]
FutureSkewPolicy: TypeAlias = Literal["quarantine", "accept"]
SkewOrigin: TypeAlias = Literal["read", "contract", "setting", "panes", "unset"]
"""Where a max future skew comes from: an option of `read`, the contract, the setting, panes, or nowhere yet.

Panes have no limit: their event time is the watermark of the stream that published them.
"""
CheckAction: TypeAlias = Literal["warn", "quarantine", "stop"]


@dataclass(frozen=True)
class Column:
    """A field of a record: its name, its Spark SQL type, and whether it is required.

    `field_type` is the type in the contract, where the Spark type does not tell how values are written.
    `declared_type` and `personal` are of the contract, too. They are not stored with a plan: they decide only which
    records are valid, and what messages may show.
    """

    name: str
    type: str
    required: bool = False
    field_type: str | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    is_member: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    """Whether the name is the path to a member of a struct, as in `address.city`."""
    declared_type: str | None = field(default=None, compare=False)
    personal: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class TopicOrigin:
    """A Kafka topic with the format of its records.

    `deletes` says what happens to events of deleted rows, and `envelope` which fields are parts of the envelope.
    """

    topic: str
    encoding: str = field(default="json", metadata=OMITTED_AT_DEFAULT)
    deletes: DeletePolicy | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    envelope: EnvelopeFields = field(default=(), metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        require_name(self.topic, "read")
        require_name(self.encoding, "read.encoding")


@dataclass(frozen=True)
class FileOrigin:
    """Files below a path of the warehouse or at a URI."""

    path: str
    format: FileFormat = "delta"

    def __post_init__(self) -> None:
        require_name(self.path, "read.files")
        require_one_of(self.format, get_args(FileFormat), "read.format")


SourceOrigin: TypeAlias = TopicOrigin | FileOrigin


@dataclass(frozen=True)
class WatermarkStrategy:
    """How the watermark of a partition follows its records, and when an idle partition stops holding it back.

    Without `idle_after`, an idle partition holds the watermark back forever. Without `max_future_skew`, any future
    event time is accepted. `skew_origin` is for people: it is neither stored nor compared.
    """

    max_out_of_orderness: int = 0
    idle_after: int | None = None
    advance_when_idle: bool = False
    max_future_skew: int | None = None
    future_records: FutureSkewPolicy = "quarantine"
    skew_origin: SkewOrigin = field(default="unset", compare=False)

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
            "Set idle_after, as in idle_after='30 seconds'",
        )


@dataclass(frozen=True)
class Deduplication:
    """A record is dropped as a duplicate if its id was seen before. Ids expire `within` behind the watermark."""

    by: tuple[str, ...]
    within: int

    def __post_init__(self) -> None:
        require(len(self.by) > 0, "deduplicate.by", "no fields", "Name the fields that identify a record")
        require_positive(self.within, "deduplicate.within")


@dataclass(frozen=True)
class Tombstones:
    """How to read a record without a value: its Kafka key is deleted as of its Kafka timestamp.

    It becomes a record with the Kafka key in the field `key`, true in the field `column`, and nulls in all others.
    """

    column: str
    key: str

    def __post_init__(self) -> None:
        require_name(self.column, "read.tombstones")
        require_name(self.key, "read.tombstones")


@dataclass(frozen=True)
class RowCheck:
    """A check of a record: `violation_sql` is SQL over its fields that is true for an invalid record.

    With `warn` invalid records are counted and processed, with `quarantine` they are quarantined, with `stop` the
    stream stops before their batch is committed.
    """

    name: str
    violation_sql: str
    action: CheckAction

    def __post_init__(self) -> None:
        require_name(self.name, "checks.name")
        require_name(self.violation_sql, "checks.violation_sql")
        require_one_of(self.action, ("warn", "quarantine", "stop"), "checks.action")


MAX_CHECKS_PER_SOURCE = 60
"""The most checks of one input. The violations of a record are stored as a bit mask."""


@dataclass(frozen=True)
class PlanSource:
    """One input: its origin, columns, event time, watermark, deduplication and checks."""

    name: str
    origin: SourceOrigin
    columns: tuple[Column, ...]
    event_time: str
    watermark: WatermarkStrategy = WatermarkStrategy()
    deduplication: Deduplication | None = None
    checks: tuple[RowCheck, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    tombstones: Tombstones | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    """How records without a value are read. Without it they are quarantined."""
    unknown_fields: UnknownFieldPolicy = field(default="ignore", metadata=OMITTED_AT_DEFAULT)
    """What happens to fields that are not columns; if they are kept, there is a column for them."""

    @property
    def encoding(self) -> str:
        """The format of the records: that of the topic, or JSON for files."""
        return self.origin.encoding if isinstance(self.origin, TopicOrigin) else "json"

    @property
    def record_columns(self) -> tuple[Column, ...]:
        """The fields of a record, without the members of structs that are columns too."""
        return tuple(column for column in self.columns if not column.is_member)

    def __post_init__(self) -> None:
        require_name(self.name, "read")
        names = [check.name for check in self.checks]
        require(
            len(set(names)) == len(names), "checks", "two have the same name", "Give each check a unique name"
        )
        require(
            len(names) <= MAX_CHECKS_PER_SOURCE,
            "checks",
            len(names),
            f"Give an input at most {MAX_CHECKS_PER_SOURCE} checks",
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
        fix = "Remove one of them: a record without a value has no id"
        has_both = self.tombstones is not None and self.deduplication is not None
        require(not has_both, "read.tombstones", "together with deduplicate", fix)


def join_sorted(names: set[str]) -> str:
    """Join names in order, for a message."""
    return ", ".join(sorted(names))
