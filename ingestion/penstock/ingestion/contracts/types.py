"""The types that a field may have, and what each is called elsewhere; the words that contracts are written in.

An event time is a `timestamp`: milliseconds since the epoch, UTC, as a long in every encoding, so that a
record carries the same number whether it is read as JSON, as Avro or by Spark.
"""

import re
from dataclasses import dataclass
from typing import Literal

from penstock.ingestion.errors import ContractError

Encoding = Literal["json", "avro"]
Compatibility = Literal["none", "backward", "forward", "full"]
# name -> (Spark, Avro)
SCALARS: dict[str, tuple[str, str]] = {
    "string": ("STRING", "string"),
    "boolean": ("BOOLEAN", "boolean"),
    "int": ("INT", "int"),
    "long": ("BIGINT", "long"),
    "float": ("FLOAT", "float"),
    "double": ("DOUBLE", "double"),
    "timestamp": ("BIGINT", "long"),
}
_ARRAY = re.compile(r"^array<(.+)>$")
_SPARK_ARRAY = re.compile(r"^ARRAY<(.+)>$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A scalar, or an array of some type (`item`)."""

    name: str
    item: "FieldType | None" = None

    def __str__(self) -> str:
        return self.name if self.item is None else f"array<{self.item}>"


def parse_type(text: str) -> FieldType:
    """Read a type as the catalog writes it: `long`, `array<string>`."""
    array = _ARRAY.match(text)
    if array:
        return FieldType("array", parse_type(array[1]))
    if text not in SCALARS:
        raise ContractError(f"'{text}' is no type; use one of {', '.join(SCALARS)} or array<one of them>")
    return FieldType(text)


def spark_type(kind: FieldType) -> str:
    """Return the name of the type in Spark's DDL."""
    return SCALARS[kind.name][0] if kind.item is None else f"ARRAY<{spark_type(kind.item)}>"


def type_in_spark(text: str) -> str:
    """Return the type that Spark calls so, as the catalog writes it; BIGINT is a `long`, and may be a timestamp."""
    array = _SPARK_ARRAY.match(text)
    if array:
        return f"array<{type_in_spark(array[1])}>"
    names = {spark: name for name, (spark, _) in reversed(SCALARS.items())}
    if text.upper() not in names:
        raise ContractError(
            f"'{text}' of Spark has no counterpart here; known are {', '.join(names)}, arrays"
        )
    return names[text.upper()]


def avro_type(kind: FieldType) -> object:
    """Return the type as it stands in an Avro schema."""
    return SCALARS[kind.name][1] if kind.item is None else {"type": "array", "items": avro_type(kind.item)}
