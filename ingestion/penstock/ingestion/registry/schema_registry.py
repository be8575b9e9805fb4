"""The schema registry protocol, and registration of contracts."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from penstock.ingestion.contracts import Contract
from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.contracts.schemas import (
    parse_schema_fields,
    refuses_unknown_fields,
)
from penstock.ingestion.errors import IncompatibleChangeError
from penstock.ingestion.registry.registry_text import to_registry_text


class RegisteredSchema(NamedTuple):
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema


class SchemaRegistry(Protocol):
    """Stores schemas by subject and version, and assigns an id to each distinct schema."""

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a version, or return the existing version with this schema."""

    def list_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return every version of a subject, oldest first; an unknown subject has none."""

    def find_schema(self, schema_id: int) -> Schema | None:
        """Return the schema with this id, or None."""


def contract_subject(contract: Contract) -> str:
    """Return the subject of a contract's values."""
    return topic_subject(contract.topic)


def topic_subject(topic: str) -> str:
    """Return the subject of a topic's values, in the naming convention of Confluent registries."""
    return f"{topic}-value"


def register_contract(registry: SchemaRegistry, contract: Contract) -> RegisteredSchema:
    """Register the schema of a contract after checking it against every earlier version."""
    check_registration(registry, contract)
    subject = contract_subject(contract)
    return registry.register(subject, _to_schema(contract, registry.list_versions(subject)))


def check_registration(registry: SchemaRegistry, contract: Contract) -> int | None:
    """Return the version number that registration would create; None if the schema is already registered.

    Raises IncompatibleChangeError if the contract is incompatible with any earlier version, not only the last one:
    the topic still contains records of the first version.
    """
    subject = contract_subject(contract)
    versions = registry.list_versions(subject)
    schema = _to_schema(contract, versions)
    value_form = find_record_format(contract.encoding).value_form
    for version in versions:
        _check_encoding(contract, version, schema)
        incompatibilities = find_violations(
            parse_schema_fields(version.schema),
            parse_schema_fields(schema),
            contract.compatibility,
            value_form,
            old_refuses_unknown=refuses_unknown_fields(version.schema),
            new_refuses_unknown=refuses_unknown_fields(schema),
        )
        if incompatibilities:
            raise IncompatibleChangeError(
                f"Contract {contract.topic} is incompatible with version {version.version} of {subject}: "
                f"{'; '.join(map(str, incompatibilities))}. Revert the change, use a new topic, or set "
                "`compatibility: none` in the contract if nothing has to read the old records."
            )
    is_registered = any(version.schema == schema for version in versions)
    return None if is_registered else max((version.version for version in versions), default=0) + 1


def _check_encoding(contract: Contract, version: RegisteredSchema, schema: Schema) -> None:
    """Raise IncompatibleChangeError if the records of a version have another encoding: no reader has both."""
    old_type, new_type = to_registry_text(version.schema).schema_type, to_registry_text(schema).schema_type
    if contract.compatibility != "none" and old_type != new_type:
        raise IncompatibleChangeError(
            f"Contract {contract.topic} is incompatible with version {version.version} of {version.subject}: its "
            f"records are {old_type}, and encoding: {contract.encoding} reads {new_type} only. Use a new topic, or "
            "set `compatibility: none` in the contract if nothing has to read the old records."
        )


def _to_schema(contract: Contract, versions: Sequence[RegisteredSchema]) -> Schema:
    record_format = find_record_format(contract.encoding)
    return record_format.to_schema(contract, [version.schema for version in versions])
