"""Writes the Protobuf schema of a contract, and reads the fields of a contract from a schema.

A field keeps its number as long as its type stays: other readers know fields by their numbers. A number that is no
longer used is reserved. The comment after a field has the type of the contract.
"""

import re
from collections.abc import Iterator, Sequence

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.contracts.protobuf.proto_shape import (
    ProtoMap,
    ProtoMember,
    ProtoRepeated,
    ProtoScalar,
    ProtoShape,
    ProtoStruct,
)
from penstock.ingestion.contracts.protobuf.proto_syntax import ProtoField, ProtoMessage, parse_proto
from penstock.ingestion.contracts.schemas import avro_record_name
from penstock.ingestion.errors import ContractError

WRAPPED_FIELD = "items"
"""The field of a message that stands for an array or a map inside of another one, which Protobuf does not have."""
_TYPE_COMMENT = re.compile(r"(required|optional) (\S.*)")
_CONTRACT_TYPES = {
    "bool": "boolean",
    "int32": "int",
    "sint32": "int",
    "sfixed32": "int",
    "int64": "long",
    "sint64": "long",
    "sfixed64": "long",
    "uint32": "long",
    "fixed32": "long",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
}


def to_proto_text(contract: Contract, earlier_texts: Sequence[str] = ()) -> str:
    """Return the schema of a contract; `earlier_texts` are the schemas of its topic so far."""
    name = avro_record_name(contract.topic)
    members = list_members(contract.fields)
    comments = {
        field.name: f"{'required' if field.required else 'optional'} {field.type}"
        for field in contract.fields
    }
    earlier = [each for text in earlier_texts for each in parse_proto(text).messages if each.name == name]
    lines = [
        'syntax = "proto3";',
        "",
        "package penstock;",
        "",
        *_write_message(name, members, earlier, comments),
    ]
    return "\n".join(lines) + "\n"


def list_members(fields: Sequence[ContractField]) -> tuple[ProtoMember, ...]:
    """Return the fields of the message for these fields of a contract."""
    return tuple(ProtoMember(field.name, field.parsed_type.proto_shape, field.required) for field in fields)


def parse_proto_fields(text: str) -> tuple[ContractField, ...]:
    """Return the fields of the first message of a schema; raise ContractError if it has none."""
    messages = parse_proto(text).messages
    if not messages:
        raise ContractError("The Protobuf schema has no message. Register one with a message.")
    return tuple(
        parsed for field in messages[0].fields if (parsed := _parse_contract_field(field)) is not None
    )


def _parse_contract_field(field: ProtoField) -> ContractField | None:
    """Return a field with the type in its comment, or for its type in Protobuf; None if a contract has none."""
    if match := _TYPE_COMMENT.fullmatch(field.comment):
        try:
            return ContractField(field.name, str(parse_type(match[2])), "", match[1] == "required")
        except ContractError:
            pass
    type_text = _CONTRACT_TYPES.get(field.type_name)
    if type_text is None:
        return None
    if field.key_type:
        type_text = f"map<string, {type_text}>"
    elif field.label == "repeated":
        type_text = f"array<{type_text}>"
    return ContractField(field.name, type_text, "", required=False)


def _write_message(
    name: str,
    members: Sequence[ProtoMember],
    earlier: Sequence[ProtoMessage],
    comments: dict[str, str],
) -> Iterator[str]:
    numbers = _FieldNumbers(earlier)
    yield f"message {name} {{"
    for member in members:
        inner_name = f"{''.join(part.capitalize() for part in member.name.split('_'))}Value"
        inner_earlier = [each for message in earlier for each in message.messages if each.name == inner_name]
        for line in _write_inner_message(inner_name, member.shape, inner_earlier):
            yield f"  {line}"
        declaration = _declare(member.shape, inner_name)
        comment = f"  // {comments[member.name]}" if member.name in comments else ""
        yield f"  {declaration} {member.name} = {numbers.assign(member.name, declaration)};{comment}"
    if reserved := numbers.list_unused():
        yield f"  reserved {', '.join(map(str, reserved))};"
    yield "}"


def _write_inner_message(name: str, shape: ProtoShape, earlier: Sequence[ProtoMessage]) -> Iterator[str]:
    """Yield the message that a shape needs, if any: of a struct, or of an array or a map inside of another one."""
    match shape:
        case ProtoStruct(members):
            yield from _write_message(name, members, earlier, {})
        case ProtoRepeated(ProtoStruct() as inner) | ProtoMap(ProtoStruct() as inner):
            yield from _write_inner_message(name, inner, earlier)
        case ProtoRepeated((ProtoRepeated() | ProtoMap()) as inner) | ProtoMap(
            (ProtoRepeated() | ProtoMap()) as inner
        ):
            yield from _write_message(name, (ProtoMember(WRAPPED_FIELD, inner, True),), earlier, {})


def _declare(shape: ProtoShape, inner_name: str) -> str:
    """Return the declaration of a field. A single value has presence, so that absent is not the same as zero."""
    match shape:
        case ProtoScalar(name):
            return f"optional {name}"
        case ProtoStruct():
            return f"optional {inner_name}"
        case ProtoRepeated(item):
            return f"repeated {item.name if isinstance(item, ProtoScalar) else inner_name}"
        case ProtoMap(value):
            return f"map<string, {value.name if isinstance(value, ProtoScalar) else inner_name}>"


class _FieldNumbers:
    """Assigns the numbers of the fields of one message."""

    def __init__(self, earlier: Sequence[ProtoMessage]) -> None:
        fields = [field for message in earlier for field in message.fields]
        self._known = {(field.name, field.declaration): field.number for field in fields}
        self._used = {field.number for field in fields}.union(*(message.reserved for message in earlier))
        self._assigned: set[int] = set()

    def assign(self, name: str, declaration: str) -> int:
        """Return the number that the field has already, or a new one."""
        number = self._known.get((name, declaration)) or max((*self._used, *self._assigned), default=0) + 1
        self._assigned.add(number)
        return number

    def list_unused(self) -> list[int]:
        """Return the numbers of earlier fields that the message no longer has."""
        return sorted(self._used - self._assigned)
