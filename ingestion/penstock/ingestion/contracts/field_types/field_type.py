"""What a type of a contract answers: how it is written, checked, encoded, stored and compared."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from penstock.ingestion.contracts.contract_modes import RecordEncoding

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

JsonSchema = Mapping[str, Any]
ParseType = Callable[[Any], "FieldType"]
"""Parses the type inside of another type, such as the item of an array."""


class FieldType(ABC):
    """A type of a field. `str` gives it as the contract writes it, and parsing that text gives an equal type."""

    keyword: ClassVar[str] = ""
    syntax: ClassVar[str] = ""
    """How the type is written, with its arguments in capitals; the keyword if it is empty."""

    @classmethod
    @abstractmethod
    def from_arguments(cls, arguments: str | None, parse: ParseType) -> Self:
        """Return the type with the text in its brackets; raise ContractError if it is wrong."""

    @property
    def is_scalar(self) -> bool:
        """Whether a value has no parts. Only scalar fields can be keys, ids and event times."""
        return True

    # Python

    @property
    @abstractmethod
    def annotation(self) -> Any:
        """The annotation of a member of a msgspec structure, which validates and decodes a value."""

    def to_key_text(self, value: Any) -> str:
        """Return a decoded value as the text of a Kafka key."""
        return str(value)

    def normalize_row_value(self, value: Any) -> Any:
        """Return the value of a row, such as text of CSV, as the decoder reads it; other values unchanged."""
        return value

    def is_finite(self, _value: Any) -> bool:
        """Return whether a decoded value contains neither NaN nor infinity, which JSON cannot represent."""
        return True

    # Spark

    @property
    @abstractmethod
    def spark_type(self) -> str:
        """The type of the stored column, in the DDL of Spark."""

    @classmethod
    @abstractmethod
    def from_spark_type(cls, text: str, parse: ParseType) -> Self | None:
        """Return the type that stores its values like this, or None."""

    @property
    def json_ddl(self) -> str:
        """The type with which Spark's `from_json` reads a member."""
        return self.spark_type

    def value_sql(self, column: str) -> str:
        """Return SQL that converts what `from_json` read to the stored value."""
        return column

    def proof_sql(self, _column: str) -> str | None:
        """Return SQL over what `from_json` read, true only if the Python decoder accepts the member.

        It is null for a null. None means that each value is accepted. A value of text proves nothing, because
        `from_json` also reads numbers and objects as text.
        """
        return None

    # Avro

    @property
    @abstractmethod
    def avro_type(self) -> object:
        """The type as a registered Avro schema writes it."""

    @classmethod
    @abstractmethod
    def from_avro_type(cls, avro_type: Any, parse: ParseType) -> Self | None:
        """Return the type that an Avro schema writes like this, or None."""

    @abstractmethod
    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Move the cursors of these rows over one value each, and mark rows whose value is invalid.

        Text or integers of a named field are recorded: the field may be the key.
        """

    def invalid_text_sql(self, _column: str) -> str | None:
        """Return SQL that is true if a value from Avro has text that is not UTF-8; None if it has no text."""
        return None

    # JSON Schema and compatibility

    @property
    @abstractmethod
    def json_schema(self) -> JsonSchema:
        """The schema of a value."""

    @classmethod
    @abstractmethod
    def from_json_schema(cls, schema: JsonSchema, parse: ParseType) -> Self | None:
        """Return the type that writes this schema, or None."""

    @classmethod
    def from_plain_json_type(cls, _name: str) -> Self | None:
        """Return the type for a schema of others that has a JSON type without a known format, or None."""
        return None

    def can_read(self, writer: "FieldType", _encoding: RecordEncoding) -> bool:
        """Return whether every value of the writer's type can be read as this type."""
        return self == writer
