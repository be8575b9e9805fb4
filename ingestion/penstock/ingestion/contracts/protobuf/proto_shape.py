"""How values of a type are written in a Protobuf message."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

ProtoScalarName: TypeAlias = Literal["string", "bytes", "bool", "int32", "int64", "float", "double"]


@dataclass(frozen=True, slots=True)
class ProtoScalar:
    """A scalar. Text holds every value whose JSON is text."""

    name: ProtoScalarName = "string"


@dataclass(frozen=True, slots=True)
class ProtoRepeated:
    """A repeated field."""

    item: "ProtoShape"


@dataclass(frozen=True, slots=True)
class ProtoMap:
    """A map with keys of text."""

    value: "ProtoShape"


@dataclass(frozen=True, slots=True)
class ProtoStruct:
    """A message inside of the message."""

    members: "tuple[ProtoMember, ...]"


@dataclass(frozen=True, slots=True)
class ProtoMember:
    """A field of a message. An array or a map that is `required` is there even if it is empty."""

    name: str
    shape: "ProtoShape"
    required: bool


ProtoShape: TypeAlias = ProtoScalar | ProtoRepeated | ProtoMap | ProtoStruct
