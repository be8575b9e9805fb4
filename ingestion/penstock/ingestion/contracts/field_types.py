"""Field types of contracts, and their names in Spark and Avro.

An event time is a `timestamp`: milliseconds since the epoch, UTC, stored as a long in every encoding. A record
therefore has the same number in JSON, in Avro and in Spark.
"""

import re
from dataclasses import dataclass
from typing import Literal

from penstock.core.names import suggest_name
from penstock.ingestion.errors import ContractError

RecordEncoding = Literal["json", "avro"]
CompatibilityMode = Literal["none", "backward", "forward", "full"]
# Contract type -> (Spark type, Avro type).
SCALAR_TYPES: dict[str, tuple[str, str]] = {
    "string": ("STRING", "string"),
    "boolean": ("BOOLEAN", "boolean"),
    "int": ("INT", "int"),
    "long": ("BIGINT", "long"),
    "float": ("FLOAT", "float"),
    "double": ("DOUBLE", "double"),
    "timestamp": ("BIGINT", "long"),
}
_ARRAY_PATTERN = re.compile(r"^array<(.+)>$")
_SPARK_ARRAY_PATTERN = re.compile(r"^ARRAY<(.+)>$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A scalar type, or an array of items of `item_type`."""

    name: str
    item_type: "FieldType | None" = None

    def __str__(self) -> str:
        return self.name if self.item_type is None else f"array<{self.item_type}>"


def parse_type(text: str) -> FieldType:
    """Parse a type as the catalog writes it: `long`, `array<string>`."""
    array = _ARRAY_PATTERN.match(text)
    if array:
        return FieldType("array", parse_type(array[1]))
    if text not in SCALAR_TYPES:
        raise ContractError(
            f"'{text}' is not a type.{suggest_name(text, SCALAR_TYPES)} "
            f"Types: {', '.join(SCALAR_TYPES)}, and array<TYPE>."
        )
    return FieldType(text)


def to_spark_type(field_type: FieldType) -> str:
    """Return the name of the type in Spark DDL."""
    return (
        SCALAR_TYPES[field_type.name][0]
        if field_type.item_type is None
        else f"ARRAY<{to_spark_type(field_type.item_type)}>"
    )


def parse_spark_type(text: str) -> str:
    """Return the contract type for a Spark type. BIGINT becomes `long`, although it may hold a timestamp."""
    array = _SPARK_ARRAY_PATTERN.match(text)
    if array:
        return f"array<{parse_spark_type(array[1])}>"
    names = {spark: name for name, (spark, _) in reversed(SCALAR_TYPES.items())}
    if text.upper() not in names:
        raise ContractError(
            f"Spark type '{text}' has no contract type. Supported: {', '.join(names)}, and arrays."
        )
    return names[text.upper()]


def to_avro_type(field_type: FieldType) -> object:
    """Return the type as an Avro schema writes it."""
    return (
        SCALAR_TYPES[field_type.name][1]
        if field_type.item_type is None
        else {"type": "array", "items": to_avro_type(field_type.item_type)}
    )
