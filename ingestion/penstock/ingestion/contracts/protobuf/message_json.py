"""Messages as JSON values, and back, by the fields of a contract."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from penstock.ingestion.contracts.protobuf.proto_shape import (
    ProtoMap,
    ProtoMember,
    ProtoRepeated,
    ProtoScalar,
    ProtoShape,
    ProtoStruct,
)
from penstock.ingestion.contracts.protobuf.proto_text import WRAPPED_FIELD

Members: TypeAlias = Sequence[ProtoMember]
ReadValue: TypeAlias = Callable[[Any], Any]
_TIMESTAMP = "google.protobuf.Timestamp"
_VALUE_WRAPPERS = "google/protobuf/wrappers.proto"
_NUMBER_TYPES = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


class MessageReader:
    """Reads messages of one type. Fields that the contract does not have are skipped."""

    def __init__(self, descriptor: Descriptor, members: Members) -> None:
        self._fields = [
            (member, field, _is_repeated(field), _read_field(field, member.shape))
            for member in members
            if (field := descriptor.fields_by_name.get(member.name)) is not None
        ]

    def read(self, message: Message) -> dict[str, Any]:
        """Return the values that are there. An empty array or map of a field that is not required is not there."""
        values: dict[str, Any] = {}
        for member, field, is_repeated, read_value in self._fields:
            part = getattr(message, member.name)
            if is_repeated:
                if part or member.required:
                    values[member.name] = read_value(part)
            elif not field.has_presence or message.HasField(member.name):
                values[member.name] = read_value(part)
        return values


def write_members(message: Message, values: Mapping[str, Any], members: Members) -> None:
    """Set the fields of a message from the values of a record."""
    for member in members:
        if (value := values.get(member.name)) is not None:
            _write_value(message, member.name, value, member.shape)


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _read_field(field: FieldDescriptor, shape: ProtoShape) -> ReadValue:
    """Return the function that reads a field, whose type may be another one than the contract expects."""
    if not _is_repeated(field):
        return _read_single(field, shape)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value_field = field.message_type.fields_by_name["value"]
        read_value = _read_single(value_field, shape.value if isinstance(shape, ProtoMap) else shape)
        return lambda entries: {str(key): read_value(entries[key]) for key in entries}
    read_item = _read_single(field, shape.item if isinstance(shape, ProtoRepeated) else shape)
    return lambda items: [read_item(item) for item in items]


def _read_single(field: FieldDescriptor, shape: ProtoShape) -> ReadValue:
    if field.enum_type is not None:
        names = {number: symbol.name for number, symbol in field.enum_type.values_by_number.items()}
        return lambda value: names.get(value, value)
    if field.message_type is None:
        return _read_number if field.cpp_type in _NUMBER_TYPES else _read_as_is
    return _read_message(field.message_type, shape)


def _read_message(descriptor: Descriptor, shape: ProtoShape) -> ReadValue:
    if descriptor.full_name == _TIMESTAMP:
        return lambda message: message.ToJsonString()
    if descriptor.file.name == _VALUE_WRAPPERS:
        return lambda message: message.value
    match shape:
        case ProtoStruct(members):
            return MessageReader(descriptor, members).read
        case ProtoRepeated() | ProtoMap() if WRAPPED_FIELD in descriptor.fields_by_name:
            read_wrapped = _read_field(descriptor.fields_by_name[WRAPPED_FIELD], shape)
            return lambda message: read_wrapped(getattr(message, WRAPPED_FIELD))
    return lambda _message: {"message": descriptor.full_name}


def _read_as_is(value: Any) -> Any:
    return value


def _read_number(value: float) -> float | str:
    """Return a number; NaN and infinity are text in JSON."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_value(message: Message, name: str, value: Any, shape: ProtoShape) -> None:
    match shape:
        case ProtoScalar():
            setattr(message, name, _to_scalar(value, shape))
        case ProtoStruct(members):
            part = getattr(message, name)
            part.SetInParent()
            write_members(part, value, members)
        case ProtoRepeated(ProtoScalar() as item):
            getattr(message, name).extend(_to_scalar(each, item) for each in value)
        case ProtoRepeated(item):
            for each in value:
                _write_inner(getattr(message, name).add(), each, item)
        case ProtoMap(ProtoScalar() as item):
            getattr(message, name).update({key: _to_scalar(each, item) for key, each in value.items()})
        case ProtoMap(item):
            for key, each in value.items():
                inner = getattr(message, name)[key]
                inner.SetInParent()
                _write_inner(inner, each, item)


def _write_inner(message: Message, value: Any, shape: ProtoShape) -> None:
    """Write a struct, or an array or a map inside of another one."""
    if isinstance(shape, ProtoStruct):
        write_members(message, value, shape.members)
    else:
        _write_value(message, WRAPPED_FIELD, value, shape)


def _to_scalar(value: Any, shape: ProtoScalar) -> Any:
    return float(value) if shape.name in ("float", "double") else value
