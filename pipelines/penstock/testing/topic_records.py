"""Records of topics as a test sends them, and their verdict by the contract."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from penstock.conformance.reference import InputRecord
from penstock.engine.errors import PipelineTestError
from penstock.engine.plan.nested_columns import read_nested_values
from penstock.engine.plan.sources import PlanSource, Tombstones
from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.errors import InvalidRecordError

RecordLike: TypeAlias = Mapping[str, Any] | str | bytes | None
"""A record: its fields, its JSON as text or bytes, or None for a tombstone."""


@dataclass(frozen=True)
class TopicRecord:
    """A record as its topic stores it, in JSON."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def encode_value(record: RecordLike) -> bytes | None:
    """Return the bytes of a record's value. Raises PipelineTestError for fields that JSON cannot hold."""
    match record:
        case None | bytes():
            return record
        case str():
            return record.encode()
        case Mapping():
            try:
                return json.dumps(record, default=_encode_special).encode()
            except (TypeError, ValueError) as problem:
                raise PipelineTestError(
                    f"{dict(record)!r} is not JSON: {problem}. Write numbers, text and lists"
                ) from None
    raise PipelineTestError(f"{record!r} is not a record. Write its fields as a dict, or its JSON as text")


def _encode_special(value: object) -> str:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    raise TypeError(f"a value is of type {type(value).__name__}")


def judge_record(record: TopicRecord, source: PlanSource, contract: Contract, clock: int) -> InputRecord:
    """Return a record with its fields, or with the reason why it is invalid."""
    if record.value is None:
        fields = _read_tombstone(record, source.tombstones, source.event_time, clock)
        error = "no_value" if fields is None else None
    else:
        fields, error = _decode(contract, source, record.value)
    return InputRecord(source.name, record.partition, record.offset, fields or {}, error)


def _decode(contract: Contract, source: PlanSource, value: bytes) -> tuple[dict[str, Any] | None, str | None]:
    try:
        decoded = json_codec(contract).decode(value)
    except InvalidRecordError as problem:
        return None, str(problem)
    fields: dict[str, Any] = {}
    for contract_field in contract.fields:
        value_of_field = getattr(decoded, contract_field.name)
        convert = contract_field.parsed_type.stored_converter
        fields[contract_field.name] = (
            value_of_field if convert is None or value_of_field is None else convert(value_of_field)
        )
    return fields | read_nested_values(source, fields), None


def _read_tombstone(
    record: TopicRecord, tombstones: Tombstones | None, event_time: str, clock: int
) -> dict[str, Any] | None:
    if tombstones is None or record.key is None:
        return None
    return {tombstones.key: record.key.decode(), event_time: clock, tombstones.column: True}
