"""What a topic's records look like, declared once."""

from dataclasses import dataclass, field

from penstock.ingestion.contracts.soundness import check_contract
from penstock.ingestion.contracts.types import Compatibility, Encoding, FieldType, parse_type, spark_type
from penstock.ingestion.errors import ContractError


@dataclass(frozen=True, slots=True)
class Field:
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
    def kind(self) -> FieldType:
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
    fields: tuple[Field, ...]
    key: str | None = None
    event_time: str | None = None
    id: str | None = None
    bound_ms: int = 10_000
    encoding: Encoding = "json"
    compatibility: Compatibility = "backward"
    max_bytes: int = 900_000
    layout: TopicLayout = field(default_factory=TopicLayout)
    environments: tuple[tuple[str, TopicLayout], ...] = ()
    owner: str | None = None

    def __post_init__(self) -> None:
        check_contract(self)

    @property
    def dead_letters(self) -> str:
        """The topic that takes records which break this contract."""
        return f"{self.topic}.dead-letters"

    def field(self, name: str) -> Field:
        """Return the field of that name."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        names = ", ".join(candidate.name for candidate in self.fields)
        raise ContractError(f"contract {self.topic} has no field '{name}'; it has {names}")

    def layout_in(self, environment: str) -> TopicLayout:
        """Return how the topic is kept in an environment; the general layout where none is declared."""
        return dict(self.environments).get(environment, self.layout)

    def spark_ddl(self) -> str:
        """Return the Spark schema of the value, as DDL.

        Every column is nullable: Spark reads what is in the topic, and judging it is the contract's business.
        """
        return ", ".join(f"`{item.name}` {spark_type(item.kind)}" for item in self.fields)
