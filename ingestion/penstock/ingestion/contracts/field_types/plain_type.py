"""The base of types that are written as one word, without arguments."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeAlias

from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, ParseType
from penstock.ingestion.contracts.protobuf.proto_shape import ProtoScalar, ProtoScalarName, ProtoShape
from penstock.ingestion.errors import ContractError

Promotions: TypeAlias = Mapping[ValueForm, tuple[str, ...]]
"""The types of writers whose values a type reads, for each form of values."""


class PlainType(FieldType):
    """A type without arguments, which Avro has under a name of its own. A kind defines the class variables."""

    spark_name: ClassVar[str]
    avro_name: ClassVar[str]
    json_name: ClassVar[str]
    proto_name: ClassVar[ProtoScalarName] = "string"
    reads_plain_json: ClassVar[bool] = False
    """Whether a schema of others with the JSON type `json_name` is of this type."""
    promoted_from: ClassVar[Promotions] = {}

    def __str__(self) -> str:
        return self.keyword

    @classmethod
    def from_arguments(cls, arguments: str | None, _parse: ParseType) -> Self:
        """Return the type; raise ContractError if there are arguments."""
        if arguments is not None:
            raise ContractError(f"Type {cls.keyword} takes no arguments, but has ({arguments}). Remove them.")
        return cls()

    @property
    def spark_type(self) -> str:
        """The type of the stored column."""
        return self.spark_name

    @classmethod
    def from_spark_type(cls, text: str, _parse: ParseType) -> Self | None:
        """Return the type for its name in Spark."""
        return cls() if text.upper() == cls.spark_name else None

    def to_avro_type(self, _name: str) -> object:
        """Return the name of the type in Avro."""
        return self.avro_name

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for its name in Avro."""
        return cls() if avro_type == cls.avro_name else None

    @property
    def proto_shape(self) -> ProtoShape:
        """The scalar of Protobuf."""
        return ProtoScalar(self.proto_name)

    @property
    def json_schema(self) -> JsonSchema:
        """The JSON type, with the name of this type as its format."""
        return {"type": self.json_name, "format": self.keyword}

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, _parse: ParseType) -> Self | None:
        """Return the type for its format."""
        return cls() if schema.get("format") == cls.keyword else None

    @classmethod
    def from_plain_json_type(cls, name: str) -> Self | None:
        """Return the type for a JSON type without a known format."""
        return cls() if cls.reads_plain_json and name == cls.json_name else None

    def can_read(self, writer: FieldType, value_form: ValueForm) -> bool:
        """Return whether the writer has this type or one that is promoted to it."""
        return self == writer or writer.promotion_name in self.promoted_from.get(value_form, ())
