"""The types that a field may have, and what each is called elsewhere; the words that contracts are written in.

An event time is a `timestamp`: milliseconds since the epoch, UTC, as a long in every encoding, so that a
record carries the same number whether it is read as JSON, as Avro or by Spark.
"""

import re
from dataclasses import dataclass
from typing import Literal

from penstock.ingestion.errors import ContractError

RecordEncoding = Literal["json", "avro"]
CompatibilityMode = Literal["none", "backward", "forward", "full"]
# name -> (Spark, Avro)
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
    """A scalar, or an array of some type (`item`)."""

    name: str
    item_type: "FieldType | None" = None

    def __str__(self) -> str:
        return self.name if self.item_type is None else f"array<{self.item_type}>"


def parse_type(text: str) -> FieldType:
    """Read a type as the catalog writes it: `long`, `array<string>`."""
    array = _ARRAY_PATTERN.match(text)
    if array:
        return FieldType("array", parse_type(array[1]))
    if text not in SCALAR_TYPES:
        raise ContractError(
            f"'{text}' is no type; use one of {', '.join(SCALAR_TYPES)} or array<one of them>"
        )
    return FieldType(text)


def to_spark_type(field_type: FieldType) -> str:
    """Return the name of the type in Spark's DDL."""
    return (
        SCALAR_TYPES[field_type.name][0]
        if field_type.item_type is None
        else f"ARRAY<{to_spark_type(field_type.item_type)}>"
    )


def parse_spark_type(text: str) -> str:
    """Return the type that Spark calls so, as the catalog writes it; BIGINT is a `long`, and may be a timestamp."""
    array = _SPARK_ARRAY_PATTERN.match(text)
    if array:
        return f"array<{parse_spark_type(array[1])}>"
    names = {spark: name for name, (spark, _) in reversed(SCALAR_TYPES.items())}
    if text.upper() not in names:
        raise ContractError(
            f"'{text}' of Spark has no counterpart here; known are {', '.join(names)}, arrays"
        )
    return names[text.upper()]


def to_avro_type(field_type: FieldType) -> object:
    """Return the type as it stands in an Avro schema."""
    return (
        SCALAR_TYPES[field_type.name][1]
        if field_type.item_type is None
        else {"type": "array", "items": to_avro_type(field_type.item_type)}
    )
