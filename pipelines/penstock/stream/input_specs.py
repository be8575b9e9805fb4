"""What is read: a topic's contract, with what this pipeline says otherwise."""

import re
from dataclasses import dataclass, replace
from types import NoneType
from typing import Protocol, cast

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import CHANGELOG_COLUMNS, PANE_WATERMARK_COLUMN
from penstock.engine.plan.sources import (
    Column,
    Deduplication,
    FileFormat,
    FileOrigin,
    FutureSkewPolicy,
    PlanSource,
    SourceOrigin,
    Tombstones,
    TopicOrigin,
    WatermarkStrategy,
)
from penstock.engine.plan.validation.argument_checks import require, require_type
from penstock.ingestion.contracts import Contract, list_contract_names, load_contract
from penstock.ingestion.contracts.field_types import to_spark_type
from penstock.stream.durations import Duration, to_milliseconds


@dataclass(frozen=True)
class TopicInput:
    """A topic to read, and its time; what is None is as the contract says, or off."""

    topic: str | Contract
    event_time: str | None = None
    max_out_of_orderness: Duration | None = None
    idle_after: Duration | None = None
    advance_when_idle: bool = False
    max_future_skew: Duration | None = None
    future_records: str = "quarantine"
    files: str | None = None
    format: str = "delta"
    tombstones: str | None = None

    def __post_init__(self) -> None:
        for name in ("event_time", "future_records", "files", "format", "tombstones"):
            require_type(getattr(self, name), str | NoneType, f"read.{name}", "Write a text")
        for name in ("max_out_of_orderness", "idle_after", "max_future_skew"):
            to_milliseconds_or_none(getattr(self, name), f"read.{name}")
        require_type(self.advance_when_idle, bool, "read.advance_when_idle", "Write true or false")
        self._refuse_unused_options()

    def _refuse_unused_options(self) -> None:
        """Refuse what would do nothing because what it goes with is not said."""
        fix = "Set max_future_skew, as in max_future_skew='1 hour', or remove future_records"
        has_skew_guard = self.max_future_skew is not None or self.future_records != "accept"
        require(has_skew_guard, "read.future_records", "'accept' without max_future_skew", fix)
        fix = "Say with files where the records are, or leave format out"
        reads_files = self.files is not None or self.format == "delta"
        require(reads_files, "read.format", f"{self.format!r} without files", fix)

    def to_source(self, deduplication_spec: "DeduplicationSpec | None") -> PlanSource:
        """Return what the plan reads."""
        contract = resolve_contract(self.topic)
        event_time = self.event_time or contract.event_time
        if event_time is None:
            fix = "Name the field with read(..., event_time='...'), or in the contract"
            raise DefinitionError("event_time", f"the contract of {contract.topic} has none", fix)
        columns = tuple(
            Column(field.name, to_spark_type(field.parsed_type), field.required) for field in contract.fields
        )
        tombstones = self.tombstone_rule(contract)
        if tombstones is not None:
            columns = (*columns, Column(tombstones.column, "BOOLEAN"))
        watermark_rule = self.watermark_rule(contract)
        deduplication = deduplication_spec.for_contract(contract) if deduplication_spec else None
        origin = self.source_origin(contract)
        return PlanSource(
            contract.topic, origin, columns, event_time, watermark_rule, deduplication, tombstones=tombstones
        )

    def tombstone_rule(self, contract: Contract) -> Tombstones | None:
        """Return what records without a value say."""
        if self.tombstones is None:
            return None
        fix = "Read a topic whose contract names the field of its key"
        require(
            contract.key is not None, "read.tombstones", f"the contract of {contract.topic} has no key", fix
        )
        is_field_name = any(contract_field.name == self.tombstones for contract_field in contract.fields)
        fix = "Choose a name that no field has, as in tombstones='deleted'"
        require(
            not is_field_name, "read.tombstones", f"{self.tombstones!r}, a field of {contract.topic}", fix
        )
        is_valid_name = contract.encoding != "avro" or bool(
            re.fullmatch(r"[A-Za-z_]\w*", self.tombstones, re.ASCII)
        )
        fix = "Choose one of letters, digits and _, as Avro has them, that begins with no digit"
        require(is_valid_name, "read.tombstones", f"{self.tombstones!r}", fix)
        return Tombstones(self.tombstones, str(contract.key))

    def source_origin(self, contract: Contract) -> SourceOrigin:
        """Return where the records are."""
        if self.files is None:
            return TopicOrigin(contract.topic, contract.encoding)
        return FileOrigin(self.files, cast("FileFormat", self.format))

    def watermark_rule(self, contract: Contract) -> WatermarkStrategy:
        """Return how the watermark follows the records."""
        return WatermarkStrategy(
            max_out_of_orderness=contract.max_out_of_orderness_ms
            if self.max_out_of_orderness is None
            else to_milliseconds(self.max_out_of_orderness, "read.max_out_of_orderness"),
            idle_after=to_milliseconds_or_none(self.idle_after, "read.idle_after"),
            advance_when_idle=self.advance_when_idle,
            max_future_skew=to_milliseconds_or_none(self.max_future_skew, "read.max_future_skew"),
            future_records=cast("FutureSkewPolicy", self.future_records),
        )


class InputSpec(Protocol):
    """What a pipeline begins with."""

    def to_source(self, deduplication_spec: "DeduplicationSpec | None") -> PlanSource:
        """Return what the plan reads."""


@dataclass(frozen=True)
class PanesInput:
    """A topic to which another stream publishes panes; their time is how far that stream's watermark had passed."""

    topic: str
    columns: tuple[Column, ...]

    def to_source(self, deduplication_spec: "DeduplicationSpec | None") -> PlanSource:
        """Return what the plan reads."""
        fix = "Leave it out: each pane is there once"
        require(deduplication_spec is None, "deduplicate", "given for panes", fix)
        return PlanSource(
            self.topic, TopicOrigin(self.topic), (*self.columns, *CHANGELOG_COLUMNS), PANE_WATERMARK_COLUMN
        )


@dataclass(frozen=True)
class DeduplicationSpec:
    """Which records are repeats of each other, and for how long that is remembered."""

    by: tuple[str, ...] | None
    within: Duration

    def __post_init__(self) -> None:
        to_milliseconds(self.within, "deduplicate.within")

    def for_contract(self, contract: Contract) -> Deduplication:
        """Return the rule for one input; without fields, the contract's id tells."""
        fields = self.by if self.by is not None else tuple(filter(None, (contract.id,)))
        if not fields:
            fix = "Name the fields with deduplicate(by='...'), or an id in the contract"
            raise DefinitionError("deduplicate.by", f"the contract of {contract.topic} has no id", fix)
        return Deduplication(fields, to_milliseconds(self.within, "deduplicate.within"))


def resolve_contract(topic: str | Contract) -> Contract:
    """Return the contract itself, from the catalog where it is named."""
    if isinstance(topic, Contract):
        return topic
    names = list_contract_names()
    fix = f"Name a topic that has a contract: {', '.join(names)}"
    require(topic in names, "read", f"there is no contract for {topic!r}", fix)
    return load_contract(topic)


def to_milliseconds_or_none(duration: Duration | None, field: str) -> int | None:
    """Return the duration in milliseconds if there is one."""
    return None if duration is None else to_milliseconds(duration, field)


def build_sources(
    inputs: tuple[InputSpec, ...], deduplication_spec: DeduplicationSpec | None
) -> tuple[PlanSource, ...]:
    """Return the plan's sources, each named after its topic; a topic read twice gets a number."""
    plan_sources: list[PlanSource] = []
    for input_spec in inputs:
        source = input_spec.to_source(deduplication_spec)
        same_name_count = sum(other.name.split("#")[0] == source.name for other in plan_sources)
        plan_sources.append(
            replace(source, name=f"{source.name}#{same_name_count + 1}") if same_name_count else source
        )
    return tuple(plan_sources)
