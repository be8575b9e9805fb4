"""Contract model: the fields, roles and layout of a topic."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract_modes import (
    CompatibilityMode,
    DeletePolicy,
    EnvelopeFields,
    UnknownFieldPolicy,
)
from penstock.ingestion.contracts.contract_validation import validate_contract
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.contracts.future_skew import FutureSkewLimit
from penstock.ingestion.errors import ContractError


@dataclass(frozen=True, slots=True)
class ContractField:
    """One field of a record. A field that is not `required` may be absent or null.

    `personal` marks personal data: data about a person, alone or combined with other data. Schemas do not contain
    it, and comparison of fields ignores it. `members` documents the members of a struct that is
    declared as a list of fields; `type` has their names and types as well.
    """

    name: str
    type: str
    doc: str
    required: bool = True
    personal: bool = field(default=False, compare=False)
    members: "tuple[ContractField, ...]" = field(default=(), compare=False)

    @property
    def parsed_type(self) -> FieldType:
        """The parsed type."""
        return parse_type(self.type)

    def iter_nested(self) -> "Iterator[ContractField]":
        """Yield the field and the members of its structs, each named by its path, as in `address.city`."""
        yield self
        for name, member_type in self.parsed_type.member_types.items():
            declared = next((member for member in self.members if member.name == name), None)
            member = declared or ContractField(name, str(member_type), self.doc, required=False)
            path = f"{self.name}.{name}"
            yield from replace(member, name=path, personal=member.personal or self.personal).iter_nested()


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """How the broker stores the topic. A `retention_ms` of -1 means that records are retained forever."""

    partitions: int = 3
    replicas: int = 1
    retention_ms: int = 604_800_000
    compacted: bool = False
    settings: tuple[tuple[str, str], ...] = ()


DEAD_LETTER_SUFFIX = ".dead-letters"


def dead_letter_topic(topic: str) -> str:
    """Return the topic that receives the invalid records of a topic."""
    return f"{topic}{DEAD_LETTER_SUFFIX}"


def is_dead_letter_topic(topic: str) -> bool:
    """Return whether a topic receives the invalid records of another one."""
    return topic.endswith(DEAD_LETTER_SUFFIX)


@dataclass(frozen=True, slots=True)
class Contract:
    """The declaration of one topic; everything else about its records is derived from it.

    `key` names the field whose text is the Kafka key, `event_time` the timestamp that windows use, and `id` the
    field that identifies duplicates. `max_out_of_orderness_ms` is how far a record may be behind the newest one
    before it is late. `max_future_skew` is how far its event time may be ahead of the clock, in milliseconds; None
    leaves that to the platform's setting. `owner` is the contact: an email address, or `team:` and a name.
    `unknown_fields` decides about fields that are not declared here. `encoding` names the format of the records.
    In a format with events of changed rows, `deletes` says what happens to those of deleted rows. `envelope` has
    the fields that are no columns of the row, each with its path in the envelope.
    """

    topic: str
    doc: str
    fields: tuple[ContractField, ...]
    key: str | None = None
    event_time: str | None = None
    id: str | None = None
    max_out_of_orderness_ms: int = 10_000
    max_future_skew: FutureSkewLimit | None = None
    encoding: str = "json"
    compatibility: CompatibilityMode = "backward"
    max_bytes: int = 900_000
    layout: TopicLayout = field(default_factory=TopicLayout)
    environments: tuple[tuple[str, TopicLayout], ...] = ()
    owner: str | None = None
    unknown_fields: UnknownFieldPolicy = "ignore"
    deletes: DeletePolicy | None = None
    envelope: EnvelopeFields = ()

    def __post_init__(self) -> None:
        validate_contract(self)

    @property
    def dead_letter_topic(self) -> str:
        """The topic that receives invalid records."""
        return dead_letter_topic(self.topic)

    def get_field(self, name: str) -> ContractField:
        """Return the field with this name; raise ContractError if there is none."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        names = [candidate.name for candidate in self.fields]
        raise ContractError(
            f"Contract {self.topic} has no field '{name}'.{suggest_name(name, names)} Fields: {', '.join(names)}."
        )

    def layout_for(self, environment: str) -> TopicLayout:
        """Return the layout for an environment, or the default layout if the environment declares none."""
        return dict(self.environments).get(environment, self.layout)
