"""Inputs of a pipeline: topics with the options that override their contracts, and panes of other streams."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from types import NoneType
from typing import Literal, Protocol, TypeAlias

from penstock.engine.definition.argument_checks import require, require_known_name, require_type
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import CHANGELOG_COLUMNS, PANE_WATERMARK_COLUMN
from penstock.engine.plan.nested_columns import list_member_columns
from penstock.engine.plan.sources import (
    Column,
    Deduplication,
    FileFormat,
    FileOrigin,
    FutureSkewPolicy,
    PlanSource,
    SkewOrigin,
    SourceOrigin,
    Tombstones,
    TopicOrigin,
    WatermarkStrategy,
)
from penstock.ingestion.contracts import (
    UNLIMITED,
    Contract,
    ContractField,
    list_contract_names,
    load_contract,
)
from penstock.ingestion.contracts.contract_modes import UNKNOWN_FIELDS_COLUMN
from penstock.ingestion.contracts.field_types.timestamp_type import DEFAULT_TIMESTAMP
from penstock.ingestion.contracts.field_types.type_discovery import parse_spark_type
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format

FutureSkew: TypeAlias = Duration | Literal["unlimited"]


@dataclass(frozen=True)
class TopicInput:
    """A topic to read, with its options. An option that is None uses the contract, or is off."""

    topic: str | Contract
    event_time: str | None = None
    max_out_of_orderness: Duration | None = None
    idle_after: Duration | None = None
    advance_when_idle: bool = False
    max_future_skew: FutureSkew | None = None
    future_records: FutureSkewPolicy = "quarantine"
    files: str | None = None
    format: FileFormat = "delta"
    tombstones: str | None = None

    def __post_init__(self) -> None:
        for name in ("event_time", "future_records", "files", "format", "tombstones"):
            require_type(getattr(self, name), str | NoneType, f"read.{name}", "Give a string")
        for name in ("max_out_of_orderness", "idle_after"):
            to_milliseconds_or_none(getattr(self, name), f"read.{name}")
        if self.max_future_skew != UNLIMITED:
            to_milliseconds_or_none(self.max_future_skew, "read.max_future_skew")
        require_type(self.advance_when_idle, bool, "read.advance_when_idle", "Write true or false")
        self._refuse_unused_options()

    def _refuse_unused_options(self) -> None:
        """Refuse options that have no effect without another option."""
        fix = "Set max_future_skew, as in max_future_skew='1 hour', or remove future_records"
        has_skew_guard = self.max_future_skew != UNLIMITED or self.future_records != "accept"
        require(has_skew_guard, "read.future_records", "'accept' with an unlimited max_future_skew", fix)
        fix = "Set files to the path of the records, or remove format"
        reads_files = self.files is not None or self.format == "delta"
        require(reads_files, "read.format", f"{self.format!r} without files", fix)

    def to_source(
        self, deduplication_spec: "DeduplicationSpec | None", paths: Collection[str] = ()
    ) -> PlanSource:
        """Return the source of the plan."""
        contract = resolve_contract(self.topic)
        event_time = self.event_time or contract.event_time
        if event_time is None:
            fix = "Set read(..., event_time='...'), or event_time in the contract"
            raise DefinitionError("event_time", f"the contract of {contract.topic} has no event time", fix)
        columns = tuple(_to_column(contract_field) for contract_field in contract.fields)
        tombstones = self.tombstone_rule(contract)
        if tombstones is not None:
            columns = (*columns, Column(tombstones.column, "BOOLEAN"))
        if contract.unknown_fields == "keep":
            columns = (*columns, Column(UNKNOWN_FIELDS_COLUMN, "STRING"))
        watermark_rule = self.watermark_rule(contract)
        deduplication = deduplication_spec.for_contract(contract) if deduplication_spec else None
        columns = (*columns, *list_member_columns(columns, paths))
        origin = self.source_origin(contract)
        return PlanSource(
            contract.topic,
            origin,
            columns,
            event_time,
            watermark_rule,
            deduplication,
            tombstones=tombstones,
            unknown_fields=contract.unknown_fields,
        )

    def tombstone_rule(self, contract: Contract) -> Tombstones | None:
        """Return how to read records without a value."""
        if self.tombstones is None:
            return None
        fix = "Set key in the contract of the topic"
        require(
            contract.key is not None, "read.tombstones", f"the contract of {contract.topic} has no key", fix
        )
        is_field_name = any(contract_field.name == self.tombstones for contract_field in contract.fields)
        fix = "Choose a name that is not a field, as in tombstones='deleted'"
        require(
            not is_field_name, "read.tombstones", f"{self.tombstones!r}, a field of {contract.topic}", fix
        )
        record_format = find_record_format(contract.encoding)
        is_valid_name = record_format.value_form != "avro" or bool(
            re.fullmatch(r"[A-Za-z_]\w*", self.tombstones, re.ASCII)
        )
        fix = "Use letters, digits and _, not starting with a digit, because the topic is Avro"
        require(is_valid_name, "read.tombstones", f"{self.tombstones!r}", fix)
        fix = "Set deletes to keep in the contract: a tombstone only repeats the event of the deleted row"
        problem = f"{self.tombstones!r} for a topic in {contract.encoding}"
        require(not record_format.ignores_tombstones, "read.tombstones", problem, fix)
        return Tombstones(self.tombstones, str(contract.key))

    def source_origin(self, contract: Contract) -> SourceOrigin:
        """Return the origin of the records: a topic or files."""
        if self.files is None:
            return TopicOrigin(contract.topic, contract.encoding, contract.deletes, contract.envelope)
        return FileOrigin(self.files, self.format)

    def watermark_rule(self, contract: Contract) -> WatermarkStrategy:
        """Return the watermark strategy."""
        max_future_skew, skew_origin = self.future_skew(contract)
        return WatermarkStrategy(
            max_out_of_orderness=contract.max_out_of_orderness_ms
            if self.max_out_of_orderness is None
            else to_milliseconds(self.max_out_of_orderness, "read.max_out_of_orderness"),
            idle_after=to_milliseconds_or_none(self.idle_after, "read.idle_after"),
            advance_when_idle=self.advance_when_idle,
            max_future_skew=max_future_skew,
            future_records=self.future_records,
            skew_origin=skew_origin,
        )

    def future_skew(self, contract: Contract) -> tuple[int | None, SkewOrigin]:
        """Return the max future skew in milliseconds, None for no limit, and where it comes from."""
        if self.max_future_skew == UNLIMITED:
            return None, "read"
        if self.max_future_skew is not None:
            return to_milliseconds(self.max_future_skew, "read.max_future_skew"), "read"
        if contract.max_future_skew == UNLIMITED:
            return None, "contract"
        if contract.max_future_skew is not None:
            return contract.max_future_skew, "contract"
        return None, "unset"


def _to_column(contract_field: ContractField) -> Column:
    """Return the column of a field, with its contract type where the Spark type does not imply it."""
    field_type = contract_field.parsed_type
    implied_types = (parse_spark_type(field_type.spark_type), DEFAULT_TIMESTAMP)
    return Column(
        contract_field.name,
        field_type.spark_type,
        contract_field.required,
        None if field_type in implied_types else str(field_type),
        declared_type=str(field_type),
        personal=contract_field.personal,
    )


class InputSpec(Protocol):
    """An input of a pipeline."""

    def to_source(
        self, deduplication_spec: "DeduplicationSpec | None", paths: Collection[str] = ()
    ) -> PlanSource:
        """Return the source of the plan."""


@dataclass(frozen=True)
class PanesInput:
    """A topic with the panes of another stream. Their event time is the watermark of that stream."""

    topic: str
    columns: tuple[Column, ...]

    def to_source(
        self, deduplication_spec: "DeduplicationSpec | None", paths: Collection[str] = ()
    ) -> PlanSource:
        """Return the source of the plan."""
        fix = "Remove it: each pane is published exactly once"
        require(deduplication_spec is None, "deduplicate", "set for panes", fix)
        return PlanSource(
            self.topic,
            TopicOrigin(self.topic),
            (*self.columns, *CHANGELOG_COLUMNS),
            PANE_WATERMARK_COLUMN,
            WatermarkStrategy(skew_origin="panes"),
        )


@dataclass(frozen=True)
class DeduplicationSpec:
    """The fields that identify duplicates, and the time for which ids are kept."""

    by: tuple[str, ...] | None
    within: Duration

    def __post_init__(self) -> None:
        to_milliseconds(self.within, "deduplicate.within")

    def for_contract(self, contract: Contract) -> Deduplication:
        """Return the deduplication of one input. Without fields, the id of the contract is used."""
        fields = self.by if self.by is not None else tuple(filter(None, (contract.id,)))
        if not fields:
            fix = "Set deduplicate(by='...'), or id in the contract"
            raise DefinitionError("deduplicate.by", f"the contract of {contract.topic} has no id", fix)
        return Deduplication(fields, to_milliseconds(self.within, "deduplicate.within"))


def resolve_contract(topic: str | Contract) -> Contract:
    """Return the contract, or load it from the catalog by the name of its topic."""
    if isinstance(topic, Contract):
        return topic
    problem = f"there is no contract for {topic!r}"
    require_known_name(topic, list_contract_names(), "read", problem, "Known topics")
    return load_contract(topic)


def to_milliseconds_or_none(duration: Duration | None, field: str) -> int | None:
    """Return the duration in milliseconds, or None."""
    return None if duration is None else to_milliseconds(duration, field)


def build_sources(
    inputs: tuple[InputSpec, ...], deduplication_spec: DeduplicationSpec | None, paths: Collection[str] = ()
) -> tuple[PlanSource, ...]:
    """Return the sources of a plan, named after their topics. A topic that is read again gets a number."""
    plan_sources: list[PlanSource] = []
    for input_spec in inputs:
        source = input_spec.to_source(deduplication_spec, paths)
        same_name_count = sum(other.name.split("#")[0] == source.name for other in plan_sources)
        plan_sources.append(
            replace(source, name=f"{source.name}#{same_name_count + 1}") if same_name_count else source
        )
    return tuple(plan_sources)
