"""What a type of a contract answers: how it is written, checked, encoded, stored and compared."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.protobuf.proto_shape import ProtoScalar, ProtoShape

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

JsonSchema = Mapping[str, Any]
OdcsProperty = Mapping[str, Any]
"""A property of a document in the Open Data Contract Standard: the keys that describe its type."""
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

    @property
    def is_timestamp(self) -> bool:
        """Whether a value is a point in time, so that the field can be the event time."""
        return False

    def to_epoch_ms(self, _value: Any) -> int:
        """Return the milliseconds of a decoded timestamp."""
        raise NotImplementedError(f"{self} is not a timestamp")

    @property
    def expectation(self) -> str:
        """What a value has to be, for messages."""
        return str(self)

    def suggest_fix(self, _value: object) -> str | None:
        """Return how to change the contract so that it fits an invalid JSON value, or None if that is not known."""
        return None

    @property
    def depth(self) -> int:
        """How many types are inside of one another, which gives each lambda in SQL a variable of its own."""
        return 0

    @property
    def member_types(self) -> "Mapping[str, FieldType]":
        """The types of the members of a struct; empty for other types."""
        return {}

    @property
    def member_names(self) -> tuple[str, ...]:
        """The names of the members of a struct; none for other types."""
        return ()

    def find_part(self, _step: str) -> "FieldType | None":
        """Return the type of a part of a value, such as `[3]` of an array; None if values have no such part."""
        return None

    # Python

    @property
    @abstractmethod
    def annotation(self) -> Any:
        """The annotation of a member of a msgspec structure, which validates and decodes a value."""

    @property
    def fault_finder(self) -> Callable[[Any], str | None] | None:
        """A function that returns what is wrong with a value that the annotation accepts, or None."""
        return None

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns a decoded value as one whose JSON Spark reads with `json_ddl` and `value_sql`.

        None if the decoded value is one already.
        """
        return None

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns a decoded value as the column stores it; None if it is the same."""
        return None

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

    def wire_sql(self, stored: str) -> str:
        """Return SQL for the wire value of a stored one, as `from_json` reads it: the inverse of `value_sql`."""
        return stored

    def proof_sql(self, _column: str) -> str | None:
        """Return SQL over what `from_json` read, true only if the Python decoder accepts the member.

        It is null for a null. None means that each value is accepted. The value of a `string` proves nothing:
        `from_json` also reads numbers and objects as text.
        """
        return None

    def text_proof_sql(self, _column: str, _prove_text: Callable[[str], str]) -> str | None:
        """Return SQL that is true if all text inside of what `from_json` read was written as text.

        It is null for a null. `prove_text` returns the SQL for one text. None means that there is no text.
        """
        return "false" if not self.is_scalar and "STRING" in self.json_ddl.upper() else None

    # Avro

    @abstractmethod
    def to_avro_type(self, name: str) -> object:
        """Return the type as a registered Avro schema writes it; a type that needs a name takes this one."""

    def to_avro_reader_type(self, name: str) -> object:
        """Return the Avro type with which Spark's `from_avro` reads a value."""
        return self.to_avro_type(name)

    @property
    def avro_ddl(self) -> str:
        """The type of what `from_avro` reads."""
        return self.spark_type

    def avro_value_sql(self, column: str) -> str:
        """Return SQL that converts what `from_avro` read to the stored value."""
        return column

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns a decoded value in the primitive type of Avro; None if it is one already."""
        return None

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that returns a primitive Avro value as one that `annotation` accepts; None if it is one."""
        return None

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
        """Return SQL that is true if what `from_avro` read has text that is not valid; None if it has no text."""
        return None

    # Protobuf

    @property
    def proto_shape(self) -> ProtoShape:
        """How a message holds a value. Text by default: it holds the JSON text of a value."""
        return ProtoScalar()

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

    # Open Data Contract Standard (ODCS)

    @property
    def odcs_type(self) -> OdcsProperty:
        """The keys of an ODCS property that describe the type.

        A `physicalType` that is this text of the type in full is enough to read it back.
        """
        # The plain types of the standard have the names of JSON Schema.
        names = self.json_schema["type"]
        return {"logicalType": names if isinstance(names, str) else names[0], "physicalType": str(self)}

    @classmethod
    def from_odcs_type(cls, _keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for a property without the full text of this type, as others write it, or None."""
        return None

    @property
    def promotion_name(self) -> str:
        """The name under which a wider type lists this one among the types that it can read."""
        return self.keyword

    def can_read(self, writer: "FieldType", _value_form: ValueForm) -> bool:
        """Return whether every value of the writer's type can be read as this type."""
        return self == writer
