"""What is read: a topic's contract, with what this pipeline says otherwise."""

import re
from dataclasses import dataclass, replace
from types import NoneType
from typing import Protocol, cast

from penstock.ingestion.contracts import Contract, contract_names, load_contract
from penstock.ingestion.contracts.types import spark_type
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model.durations import Duration, milliseconds
from penstock.pipelines.plan.checks import of_kind, require
from penstock.pipelines.plan.relaying import PASSED, RELAYED
from penstock.pipelines.plan.source import (
    AheadPolicy,
    Column,
    Deduplication,
    FileFormat,
    Files,
    Origin,
    Source,
    Tombstones,
    Topic,
    WatermarkRule,
)


@dataclass(frozen=True)
class Input:
    """A topic to read, and its time; what is None is as the contract says, or off."""

    topic: str | Contract
    event_time: str | None = None
    bound: Duration | None = None
    idle_after: Duration | None = None
    advance_when_idle: bool = False
    max_ahead: Duration | None = None
    ahead: str = "quarantine"
    files: str | None = None
    format: str = "delta"
    tombstones: str | None = None

    def __post_init__(self) -> None:
        for name in ("event_time", "ahead", "files", "format", "tombstones"):
            of_kind(getattr(self, name), str | NoneType, f"read.{name}", "Write a text")
        for name in ("bound", "idle_after", "max_ahead"):
            maybe(getattr(self, name), f"read.{name}")
        of_kind(self.advance_when_idle, bool, "read.advance_when_idle", "Write true or false")
        self._refuse_idle_words()

    def _refuse_idle_words(self) -> None:
        """Refuse what would do nothing because what it goes with is not said."""
        fix = "Say with max_ahead how far is too far, as in max_ahead='1 hour', or leave ahead out"
        guarded = self.max_ahead is not None or self.ahead != "accept"
        require(guarded, "read.ahead", "'accept' without max_ahead", fix)
        fix = "Say with files where the records are, or leave format out"
        stored = self.files is not None or self.format == "delta"
        require(stored, "read.format", f"{self.format!r} without files", fix)

    def source(self, repeats: "Repeats | None") -> Source:
        """Return what the plan reads."""
        contract = found_contract(self.topic)
        event_time = self.event_time or contract.event_time
        if event_time is None:
            fix = "Name the field with read(..., event_time='...'), or in the contract"
            raise DefinitionError("event_time", f"the contract of {contract.topic} has none", fix)
        columns = tuple(
            Column(field.name, spark_type(field.kind), field.required) for field in contract.fields
        )
        deleting = self.deletions(contract)
        if deleting is not None:
            columns = (*columns, Column(deleting.column, "BOOLEAN"))
        rule = self.watermark_rule(contract)
        deduplication = repeats.of(contract) if repeats else None
        origin = self.origin(contract)
        return Source(contract.topic, origin, columns, event_time, rule, deduplication, tombstones=deleting)

    def deletions(self, contract: Contract) -> Tombstones | None:
        """Return what records without a value say."""
        if self.tombstones is None:
            return None
        fix = "Read a topic whose contract names the field of its key"
        require(
            contract.key is not None, "read.tombstones", f"the contract of {contract.topic} has no key", fix
        )
        taken = any(one.name == self.tombstones for one in contract.fields)
        fix = "Choose a name that no field has, as in tombstones='deleted'"
        require(not taken, "read.tombstones", f"{self.tombstones!r}, a field of {contract.topic}", fix)
        plain = contract.encoding != "avro" or bool(re.fullmatch(r"[A-Za-z_]\w*", self.tombstones, re.ASCII))
        fix = "Choose one of letters, digits and _, as Avro has them, that begins with no digit"
        require(plain, "read.tombstones", f"{self.tombstones!r}", fix)
        return Tombstones(self.tombstones, str(contract.key))

    def origin(self, contract: Contract) -> Origin:
        """Return where the records are."""
        if self.files is None:
            return Topic(contract.topic, contract.encoding)
        return Files(self.files, cast("FileFormat", self.format))

    def watermark_rule(self, contract: Contract) -> WatermarkRule:
        """Return how the watermark follows the records."""
        return WatermarkRule(
            bound=contract.bound_ms if self.bound is None else milliseconds(self.bound, "read.bound"),
            idle_after=maybe(self.idle_after, "read.idle_after"),
            advance_when_idle=self.advance_when_idle,
            max_ahead=maybe(self.max_ahead, "read.max_ahead"),
            ahead=cast("AheadPolicy", self.ahead),
        )


class Readable(Protocol):
    """What a pipeline begins with."""

    def source(self, repeats: "Repeats | None") -> Source:
        """Return what the plan reads."""


@dataclass(frozen=True)
class Panes:
    """A topic to which another stream publishes panes; their time is how far that stream's watermark had passed."""

    topic: str
    columns: tuple[Column, ...]

    def source(self, repeats: "Repeats | None") -> Source:
        """Return what the plan reads."""
        fix = "Leave it out: each pane is there once"
        require(repeats is None, "deduplicate", "given for panes", fix)
        return Source(self.topic, Topic(self.topic), (*self.columns, *RELAYED), PASSED)


@dataclass(frozen=True)
class Repeats:
    """Which records are repeats of each other, and for how long that is remembered."""

    by: tuple[str, ...] | None
    within: Duration

    def __post_init__(self) -> None:
        milliseconds(self.within, "deduplicate.within")

    def of(self, contract: Contract) -> Deduplication:
        """Return the rule for one input; without fields, the contract's id tells."""
        fields = self.by if self.by is not None else tuple(filter(None, (contract.id,)))
        if not fields:
            fix = "Name the fields with deduplicate(by='...'), or an id in the contract"
            raise DefinitionError("deduplicate.by", f"the contract of {contract.topic} has no id", fix)
        return Deduplication(fields, milliseconds(self.within, "deduplicate.within"))


def found_contract(topic: str | Contract) -> Contract:
    """Return the contract itself, from the catalog where it is named."""
    if isinstance(topic, Contract):
        return topic
    names = contract_names()
    fix = f"Name a topic that has a contract: {', '.join(names)}"
    require(topic in names, "read", f"there is no contract for {topic!r}", fix)
    return load_contract(topic)


def maybe(duration: Duration | None, field: str) -> int | None:
    """Return the duration in milliseconds if there is one."""
    return None if duration is None else milliseconds(duration, field)


def sources(inputs: tuple[Readable, ...], repeats: Repeats | None) -> tuple[Source, ...]:
    """Return the plan's sources, each named after its topic; a topic read twice gets a number."""
    found: list[Source] = []
    for item in inputs:
        source = item.source(repeats)
        taken = sum(other.name.split("#")[0] == source.name for other in found)
        found.append(replace(source, name=f"{source.name}#{taken + 1}") if taken else source)
    return tuple(found)
