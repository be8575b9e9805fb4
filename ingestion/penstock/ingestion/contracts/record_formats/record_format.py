"""What a record format answers: how records are encoded, decoded, registered and read by streams."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import msgspec

from penstock.ingestion.contracts.contract_modes import ValueForm

if TYPE_CHECKING:
    from penstock.ingestion.contracts.contract import Contract, ContractField
    from penstock.ingestion.contracts.record_rules import RecordRules

Schema: TypeAlias = Mapping[str, Any]
FindSchemaById: TypeAlias = Callable[[int], Schema | None]
"""Returns the schema with this id among those of a topic, or None."""
ReadJson: TypeAlias = Callable[[bytes], bytes]
"""Returns the JSON of a record; raises InvalidRecordError, or IgnoredRecordError for one that is not to be read."""
KeyedRecords: TypeAlias = tuple[Sequence[bytes | None], Sequence[int]]
"""The key of each value, and the indexes of the values that are still to be decoded."""
StreamParser: TypeAlias = Literal["json", "avro", "python"]
"""How a stream parses records: JSON and Avro in SQL, or everything by the format itself, in Python."""
ContractProblem: TypeAlias = tuple[str, str]
"""The path of a key, and a phrase about it."""


class RecordCodec(Protocol):
    """Encodes and decodes the records of one contract."""

    @property
    def contract(self) -> "Contract":
        """The contract."""

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the value of a record. A mapping is validated first."""

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the record of a value.

        Raises InvalidRecordError, or IgnoredRecordError for a valid record that has no fields to read.
        """

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value can be of this format only, and not the plain JSON of a record."""

    def find_keys(self, values: Sequence[bytes], max_value_bytes: int) -> KeyedRecords:
        """Find the keys of values that can be proven valid without decoding, up to this size."""


class RecordFormat(ABC):
    """A format of records. `keyword` is its word in a contract, `description` says what a value is."""

    keyword: ClassVar[str] = ""
    description: ClassVar[str]
    has_plain_values: ClassVar[bool] = False
    """Whether a value is the JSON of the record and nothing else."""
    has_writer_schemas: ClassVar[bool] = True
    """Whether a value names the registered schema that it was written with, so that a registry is needed."""
    keeps_unknown_fields: ClassVar[bool] = True
    """Whether a record can hold fields that its schema does not declare."""
    ignores_tombstones: ClassVar[bool] = False
    """Whether a record without a value only repeats what another record says."""
    value_form: ClassVar[ValueForm] = "json"
    """The form in which readers get values, which decides about compatible changes."""
    stream_parser: ClassVar[StreamParser] = "python"

    def find_problems(self, contract: "Contract") -> Iterator[ContractProblem]:
        """Yield what a contract of this format cannot have."""
        fix = "Remove it, or set encoding to debezium"
        if contract.deletes is not None:
            yield "deletes", f"has deletes: {contract.deletes}, but {self.keyword} has no deleted rows. {fix}"
        if contract.envelope:
            yield "envelope", f"has an envelope, but a value in {self.keyword} has none. {fix}"

    @abstractmethod
    def to_schema(self, contract: "Contract", earlier_schemas: Sequence[Schema] = ()) -> Schema:
        """Return the schema that is registered for a contract; `earlier_schemas` are those of its topic."""

    def find_readable_fields(
        self, schema: Schema, _topic: str, _reader: Sequence["ContractField"]
    ) -> "tuple[ContractField, ...] | None":
        """Return the fields of a writer schema, or None if no record of it can be read.

        The fields are those that are known; a format whose readers judge each record needs none.
        """
        return ()

    @abstractmethod
    def create_codec(self, contract: "Contract", schema_id: int, find_schema: FindSchemaById) -> RecordCodec:
        """Return the codec of a contract; it encodes with this schema id."""

    def open_reader(self, rules: "RecordRules", find_schema: FindSchemaById) -> ReadJson:
        """Return how a stream reads the JSON of a record. A format with a parser in SQL has none."""
        raise NotImplementedError(f"{self.keyword} is parsed in SQL")
