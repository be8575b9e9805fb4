"""Validation of contracts. Each problem is a phrase that also says how to fix it."""

import re
from collections.abc import Iterator
from keyword import iskeyword
from typing import TYPE_CHECKING, get_args

from penstock.ingestion.contracts.contract_modes import (
    UNKNOWN_FIELDS_COLUMN,
    CompatibilityMode,
    RecordEncoding,
    UnknownFieldPolicy,
)
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.contract import Contract, ContractField, TopicLayout

_OWNER_PATTERN = re.compile(r"team:[\w-]+|[^@\s]+@[^@\s]+")
_TOPIC_PATTERN = re.compile(r"[a-zA-Z0-9._-]+")
# The names that Avro allows, and the length that remains after the suffix of the dead-letter topic.
_FIELD_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_TOPIC_LENGTH = 249 - len(".dead-letters")
_MAX_RECORD_BYTES = 32_000_000


def validate_contract(contract: "Contract") -> None:
    """Raise ContractError with the first problem of a contract."""
    for problem in _find_problems(contract):
        raise ContractError(f"Contract {contract.topic} {problem}.")


def _find_problems(contract: "Contract") -> Iterator[str]:
    yield from _find_name_problems(contract.topic)
    if contract.owner is not None and not _OWNER_PATTERN.fullmatch(contract.owner):
        yield f"has an invalid owner '{contract.owner}'. Use an email address or a team, such as team:sensors"
    for role, allowed in (
        ("encoding", get_args(RecordEncoding)),
        ("compatibility", get_args(CompatibilityMode)),
        ("unknown_fields", get_args(UnknownFieldPolicy)),
    ):
        if (value := getattr(contract, role)) not in allowed:
            yield f"has an unknown {role} '{value}'. Use one of {', '.join(allowed)}"
    if not 1 <= contract.max_bytes <= _MAX_RECORD_BYTES:
        yield f"has max_bytes {contract.max_bytes}. Use a number from 1 to {_MAX_RECORD_BYTES}"
    yield from _find_field_problems(contract.fields)
    if contract.encoding == "avro":
        yield from _find_avro_problems(contract.fields)
    yield from _find_role_problems(contract)
    yield from _find_unknown_field_problems(contract)
    for section, layout in (("layout", contract.layout), *contract.environments):
        yield from (
            f"has in '{section}' {problem}" for problem in _find_layout_problems(layout, contract.key)
        )


def _find_name_problems(topic: str) -> Iterator[str]:
    if not _TOPIC_PATTERN.fullmatch(topic) or topic in (".", ".."):
        yield "has an invalid topic name. Use letters, digits, '.', '-' and '_'"
    if len(topic) > _MAX_TOPIC_LENGTH:
        yield f"has a topic name of {len(topic)} characters. Kafka allows {_MAX_TOPIC_LENGTH}; use a shorter name"


def _find_field_problems(fields: "tuple[ContractField, ...]") -> Iterator[str]:
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        yield f"declares a field twice: {', '.join(sorted(names))}. Remove one of them"
    for field in fields:
        if not _FIELD_PATTERN.fullmatch(field.name) or iskeyword(field.name):
            yield (
                f"has an invalid field name '{field.name}'. Start with a letter, use letters, digits and '_', "
                "and do not use a Python keyword"
            )
        parse_type(field.type)


def _find_avro_problems(fields: "tuple[ContractField, ...]") -> Iterator[str]:
    for field in fields:
        try:
            field.parsed_type.to_avro_type(field.name)
        except ContractError as error:
            yield f"has the field '{field.name}' of type {field.type}: {str(error).rstrip('.')}"


def _find_role_problems(contract: "Contract") -> Iterator[str]:
    fields = {field.name: field for field in contract.fields}
    roles = {
        role: name for role in ("key", "event_time", "id") if (name := getattr(contract, role)) is not None
    }
    for role, name in roles.items():
        if name not in fields:
            yield f"names '{name}' as {role}, but has no such field. Declare the field"
    if contract.event_time is not None and not fields[contract.event_time].parsed_type.is_timestamp:
        yield f"has the event time '{contract.event_time}', which must have the type timestamp"
    for role, name in roles.items():
        if not fields[name].required:
            yield f"has the optional field '{name}' as {role}. Make the field required"
        if not fields[name].parsed_type.is_scalar:
            yield f"has the {fields[name].parsed_type.keyword} '{name}' as {role}. Use a scalar field"


def _find_unknown_field_problems(contract: "Contract") -> Iterator[str]:
    if contract.unknown_fields != "keep":
        return
    if contract.encoding == "avro":
        yield "keeps unknown fields, which a record in Avro cannot hold. Set unknown_fields to ignore or refuse"
    if any(field.name == UNKNOWN_FIELDS_COLUMN for field in contract.fields):
        yield (
            f"has the field '{UNKNOWN_FIELDS_COLUMN}', which is the column of unknown fields. "
            "Rename the field, or set unknown_fields to ignore or refuse"
        )


def _find_layout_problems(layout: "TopicLayout", key: str | None) -> Iterator[str]:
    for name in ("partitions", "replicas"):
        if (value := getattr(layout, name)) < 1:
            yield f"{value} {name}. Use 1 or more"
    if layout.retention_ms < -1:
        yield f"a retention of {layout.retention_ms} ms. Use a duration, such as 7 days, or forever"
    if layout.compacted and key is None:
        yield "compaction, but no key. Name a key, or turn compaction off"
