"""What a topic's records look like, declared once."""

from dataclasses import dataclass, field

from penstock.ingestion.contracts.contract_validation import validate_contract
from penstock.ingestion.contracts.field_types import (
    CompatibilityMode,
    FieldType,
    RecordEncoding,
    parse_type,
    to_spark_type,
)
from penstock.ingestion.errors import ContractError


@dataclass(frozen=True, slots=True)
class ContractField:
    """One field of a record. A field that is not `required` may be absent or null.

    `personal` says that it tells of a person, by itself or with what else is known. No schema carries it,
    and fields are the same with and without.
    """

    name: str
    type: str
    doc: str
    required: bool = True
    personal: bool = field(default=False, compare=False)

    @property
    def parsed_type(self) -> FieldType:
        """The type, parsed."""
        return parse_type(self.type)


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """How the topic is kept by the broker. `retention_ms` of -1 keeps records for ever."""

    partitions: int = 3
    replicas: int = 1
    retention_ms: int = 604_800_000
    compacted: bool = False
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Contract:
    """One declaration per topic; everything else about its records is derived from it.

    `key` names the field whose text is the Kafka key, `event_time` the timestamp that windows go by, `id` the
    field that tells repeats apart. `bound_ms` is how far behind the newest record one may honestly come.
    `owner` is whom to ask about it: an address, or `team:` and a name.
    """

    topic: str
    doc: str
    fields: tuple[ContractField, ...]
    key: str | None = None
    event_time: str | None = None
    id: str | None = None
    max_out_of_orderness_ms: int = 10_000
    encoding: RecordEncoding = "json"
    compatibility: CompatibilityMode = "backward"
    max_bytes: int = 900_000
    layout: TopicLayout = field(default_factory=TopicLayout)
    environments: tuple[tuple[str, TopicLayout], ...] = ()
    owner: str | None = None

    def __post_init__(self) -> None:
        validate_contract(self)

    @property
    def dead_letter_topic(self) -> str:
        """The topic that takes records which break this contract."""
        return f"{self.topic}.dead-letters"

    def get_field(self, name: str) -> ContractField:
        """Return the field of that name."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        names = ", ".join(candidate.name for candidate in self.fields)
        raise ContractError(f"contract {self.topic} has no field '{name}'; it has {names}")

    def layout_for(self, environment: str) -> TopicLayout:
        """Return how the topic is kept in an environment; the general layout where none is declared."""
        return dict(self.environments).get(environment, self.layout)

    def to_spark_ddl(self) -> str:
        """Return the Spark schema of the value, as DDL.

        Every column is nullable: Spark reads what is in the topic, and judging it is the contract's business.
        """
        return ", ".join(f"`{item.name}` {to_spark_type(item.parsed_type)}" for item in self.fields)
