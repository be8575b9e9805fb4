"""What a schema registry is to this platform."""

from typing import NamedTuple, Protocol

from penstock.ingestion.contracts import Contract
from penstock.ingestion.contracts.compatibility import violations
from penstock.ingestion.contracts.schemas import Schema, fields_in, schema_of
from penstock.ingestion.errors import IncompatibleChangeError


class Registered(NamedTuple):
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema


class Registry(Protocol):
    """Keeps schemas by subject and version, and gives each distinct schema an id."""

    def register(self, subject: str, schema: Schema) -> Registered:
        """Add a version, or return the one that has this schema already."""

    def versions(self, subject: str) -> tuple[Registered, ...]:
        """Return every version of a subject, oldest first; none for a subject that nobody registered."""

    def schema(self, schema_id: int) -> Schema | None:
        """Return the schema of an id, or None where there is none."""


def subject_of(contract: Contract) -> str:
    """Return the subject of a contract's values."""
    return subject_of_topic(contract.topic)


def subject_of_topic(topic: str) -> str:
    """Return the subject of a topic's values, as registries of this kind name it."""
    return f"{topic}-value"


def register_contract(registry: Registry, contract: Contract) -> Registered:
    """Register a contract's schema, after checking it against every version before it."""
    check_contract(registry, contract)
    return registry.register(subject_of(contract), schema_of(contract))


def check_contract(registry: Registry, contract: Contract) -> int | None:
    """Return the version that registering a contract would make; None where it is registered as it is.

    Refuses one that is not compatible with every version before it, not only the last: what was written under the
    first is still in the topic.
    """
    subject, schema = subject_of(contract), schema_of(contract)
    versions = registry.versions(subject)
    for version in versions:
        broken = violations(
            fields_in(version.schema), fields_in(schema), contract.compatibility, contract.encoding
        )
        if broken:
            raise IncompatibleChangeError(
                f"contract {contract.topic} cannot follow version {version.version} of {subject}: "
                f"{'; '.join(map(str, broken))}; change the contract back, or write to a new topic"
            )
    known = any(version.schema == schema for version in versions)
    return None if known else max((version.version for version in versions), default=0) + 1
