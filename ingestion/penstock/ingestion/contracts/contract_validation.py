"""Validation of contracts. Each problem is a phrase that also says how to fix it."""

import re
from collections.abc import Iterator
from keyword import iskeyword
from typing import TYPE_CHECKING, TypeAlias, get_args

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract_modes import (
    UNKNOWN_FIELDS_COLUMN,
    CompatibilityMode,
    DeletePolicy,
    UnknownFieldPolicy,
)
from penstock.ingestion.contracts.contract_problems import ContractProblemCollector
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.contract import Contract, ContractField, TopicLayout

_Problem: TypeAlias = tuple[str, str]
"""The path of a key, and a phrase about it."""
_OWNER_PATTERN = re.compile(r"team:[\w-]+|[^@\s]+@[^@\s]+")
_TOPIC_PATTERN = re.compile(r"[a-zA-Z0-9._-]+")
# The names that Avro allows, and the length that remains after the suffix of the dead-letter topic.
_FIELD_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_TOPIC_LENGTH = 249 - len(".dead-letters")
_MAX_RECORD_BYTES = 32_000_000


def validate_contract(contract: "Contract") -> None:
    """Raise InvalidContractError with the problems of a contract."""
    collector = ContractProblemCollector()
    for path, phrase in _find_problems(contract):
        collector.add(f"Contract {contract.topic} {phrase}.", path)
    collector.raise_problems()


def _find_problems(contract: "Contract") -> Iterator[_Problem]:
    yield from _find_name_problems(contract.topic)
    if contract.owner is not None and not _OWNER_PATTERN.fullmatch(contract.owner):
        fix = "Use an email address or a team, such as team:sensors"
        yield "owner", f"has an invalid owner '{contract.owner}'. {fix}"
    for role, allowed in (
        ("compatibility", get_args(CompatibilityMode)),
        ("unknown_fields", get_args(UnknownFieldPolicy)),
    ):
        if (value := getattr(contract, role)) not in allowed:
            yield role, f"has an unknown {role} '{value}'. Use one of {', '.join(allowed)}"
    if not 1 <= contract.max_bytes <= _MAX_RECORD_BYTES:
        yield "max_bytes", f"has max_bytes {contract.max_bytes}. Use a number from 1 to {_MAX_RECORD_BYTES}"
    yield from _find_field_problems(contract.fields)
    if contract.deletes not in (None, *get_args(DeletePolicy)):
        policies = ", ".join(get_args(DeletePolicy))
        yield "deletes", f"has an unknown policy of deletes '{contract.deletes}'. Use one of {policies}"
    yield from _find_format_problems(contract)
    yield from _find_role_problems(contract)
    yield from _find_unknown_field_problems(contract)
    for section, layout in (("layout", contract.layout), *contract.environments):
        path = section if section == "layout" else f"environments.{section}"
        yield from (
            (f"{path}.{name}", f"has in '{section}' {phrase}")
            for name, phrase in _find_layout_problems(layout, contract.key)
        )


def _find_name_problems(topic: str) -> Iterator[_Problem]:
    if not _TOPIC_PATTERN.fullmatch(topic) or topic in (".", ".."):
        yield "topic", "has an invalid topic name. Use letters, digits, '.', '-' and '_'"
    if len(topic) > _MAX_TOPIC_LENGTH:
        fix = f"Kafka allows {_MAX_TOPIC_LENGTH}; use a shorter name"
        yield "topic", f"has a topic name of {len(topic)} characters. {fix}"


def _find_field_problems(fields: "tuple[ContractField, ...]") -> Iterator[_Problem]:
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        second = next(number for number, name in enumerate(names) if name in names[:number])
        twice = ", ".join(sorted(name for name in set(names) if names.count(name) > 1))
        yield f"fields.{second + 1}", f"declares a field twice: {twice}. Remove one of them"
    for number, field in enumerate(fields, start=1):
        if not _FIELD_PATTERN.fullmatch(field.name) or iskeyword(field.name):
            fix = "Start with a letter, use letters, digits and '_', and do not use a Python keyword"
            yield f"fields.{number}.name", f"has an invalid field name '{field.name}'. {fix}"
        try:
            parse_type(field.type)
        except ContractError as error:
            yield f"fields.{number}.type", f"has the field '{field.name}': {str(error).rstrip('.')}"


def _find_format_problems(contract: "Contract") -> Iterator[_Problem]:
    try:
        record_format = find_record_format(contract.encoding)
    except ContractError as error:
        yield "encoding", str(error)
        return
    yield from record_format.find_problems(contract)
    if contract.unknown_fields == "keep" and not record_format.keeps_unknown_fields:
        fix = "Set unknown_fields to ignore or refuse"
        phrase = f"keeps unknown fields, which a record in {record_format.keyword} cannot hold"
        yield "unknown_fields", f"{phrase}. {fix}"


def _find_role_problems(contract: "Contract") -> Iterator[_Problem]:
    fields = {field.name: field for field in contract.fields}
    for role in ("key", "event_time", "id"):
        name = getattr(contract, role)
        if name is None:
            continue
        if name.partition(".")[0] in fields and "." in name:
            yield (
                role,
                f"names '{name}' as {role}, which is inside of a struct. Name a field of the record itself",
            )
        elif name not in fields:
            hint = suggest_name(name, fields)
            yield role, f"names '{name}' as {role}, but has no such field.{hint} Declare the field"
        else:
            yield from ((role, phrase) for phrase in _find_problems_of_role(role, fields[name]))


def _find_problems_of_role(role: str, field: "ContractField") -> Iterator[str]:
    try:
        field_type = field.parsed_type
    except ContractError:
        return
    if role == "event_time" and not field_type.is_timestamp:
        yield f"has the event time '{field.name}', which must have the type timestamp"
    if not field.required:
        yield f"has the optional field '{field.name}' as {role}. Make the field required"
    if not field_type.is_scalar:
        yield f"has the {field_type.keyword} '{field.name}' as {role}. Use a scalar field"


def _find_unknown_field_problems(contract: "Contract") -> Iterator[_Problem]:
    if contract.unknown_fields != "keep":
        return
    if any(field.name == UNKNOWN_FIELDS_COLUMN for field in contract.fields):
        fix = "Rename the field, or set unknown_fields to ignore or refuse"
        phrase = f"has the field '{UNKNOWN_FIELDS_COLUMN}', which is the column of unknown fields"
        yield "unknown_fields", f"{phrase}. {fix}"


def _find_layout_problems(layout: "TopicLayout", key: str | None) -> Iterator[_Problem]:
    for name in ("partitions", "replicas"):
        if (value := getattr(layout, name)) < 1:
            yield name, f"{value} {name}. Use 1 or more"
    if layout.retention_ms < -1:
        yield (
            "retention",
            f"a retention of {layout.retention_ms} ms. Use a duration, such as 7 days, or forever",
        )
    if layout.compacted and key is None:
        yield "compacted", "compaction, but no key. Name a key, or turn compaction off"
