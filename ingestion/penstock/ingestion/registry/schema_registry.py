"""What a schema registry is to this platform."""

from typing import NamedTuple, Protocol

from penstock.ingestion.contracts import Contract
from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.schemas import Schema, parse_schema_fields, to_schema
from penstock.ingestion.errors import IncompatibleChangeError


class RegisteredSchema(NamedTuple):
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema


class SchemaRegistry(Protocol):
    """Keeps schemas by subject and version, and gives each distinct schema an id."""

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a version, or return the one that has this schema already."""

    def list_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return every version of a subject, oldest first; none for a subject that nobody registered."""

    def find_schema(self, schema_id: int) -> Schema | None:
        """Return the schema of an id, or None where there is none."""


def contract_subject(contract: Contract) -> str:
    """Return the subject of a contract's values."""
    return topic_subject(contract.topic)


def topic_subject(topic: str) -> str:
    """Return the subject of a topic's values, as registries of this kind name it."""
    return f"{topic}-value"


def register_contract(registry: SchemaRegistry, contract: Contract) -> RegisteredSchema:
    """Register a contract's schema, after checking it against every version before it."""
    check_registration(registry, contract)
    return registry.register(contract_subject(contract), to_schema(contract))


def check_registration(registry: SchemaRegistry, contract: Contract) -> int | None:
    """Return the version that registering a contract would make; None where it is registered as it is.

    Refuses one that is not compatible with every version before it, not only the last: what was written under the
    first is still in the topic.
    """
    subject, schema = contract_subject(contract), to_schema(contract)
    versions = registry.list_versions(subject)
    for version in versions:
        incompatibilities = find_violations(
            parse_schema_fields(version.schema),
            parse_schema_fields(schema),
            contract.compatibility,
            contract.encoding,
        )
        if incompatibilities:
            raise IncompatibleChangeError(
                f"contract {contract.topic} cannot follow version {version.version} of {subject}: "
                f"{'; '.join(map(str, incompatibilities))}; change the contract back, or write to a new topic"
            )
    is_registered = any(version.schema == schema for version in versions)
    return None if is_registered else max((version.version for version in versions), default=0) + 1
