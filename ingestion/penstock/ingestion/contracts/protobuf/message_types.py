"""Message types at run time, from the text of a schema."""

from collections.abc import Sequence

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import Message

from penstock.ingestion.contracts.protobuf.proto_syntax import (
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    parse_proto,
)
from penstock.ingestion.errors import ContractError

_WELL_KNOWN = (
    "google/protobuf/timestamp.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/wrappers.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/any.proto",
    "google/protobuf/empty.proto",
)
_FieldProto = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _FieldProto.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
_LABELS = {
    "repeated": _FieldProto.LABEL_REPEATED,
    "required": _FieldProto.LABEL_REQUIRED,
}


class MessageTypes:
    """The message types of one schema. Raises ContractError for a schema that cannot be used."""

    def __init__(self, text: str) -> None:
        self._file = _build_file(parse_proto(text))

    def find_type(self, indexes: Sequence[int]) -> type[Message] | None:
        """Return the type at a path of indexes: of the message in the file, of one inside of it, and so on."""
        types: Sequence[Descriptor] = list(self._file.message_types_by_name.values())
        found = None
        for index in indexes:
            if index >= len(types):
                return None
            found = types[index]
            # The entries of maps are no messages of the text.
            types = [each for each in found.nested_types if not each.GetOptions().map_entry]
        return None if found is None else message_factory.GetMessageClass(found)


def _build_file(parsed: ProtoFile) -> FileDescriptor:
    pool = descriptor_pool.DescriptorPool()
    try:
        for name in parsed.imports:
            if name not in _WELL_KNOWN:
                raise ContractError(
                    f"The Protobuf schema imports {name}, which is not supported. Put its messages into the schema."
                )
            _add_well_known(pool, name)
        file_proto = descriptor_pb2.FileDescriptorProto(
            name="schema.proto",
            package=parsed.package,
            syntax=parsed.syntax,
            dependency=parsed.imports,
            message_type=[_to_message_proto(message, parsed.syntax) for message in parsed.messages],
            enum_type=[_to_enum_proto(enum) for enum in parsed.enums],
        )
        pool.Add(file_proto)
        return pool.FindFileByName("schema.proto")
    except (TypeError, ValueError, KeyError) as error:
        raise ContractError(f"The Protobuf schema cannot be used: {error}. Correct it.") from error


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str) -> None:
    # Imported for their effect on the default pool.
    from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

    modules = (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    file = next(module.DESCRIPTOR for module in modules if module.DESCRIPTOR.name == name)
    file_proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(file_proto)
    pool.Add(file_proto)


def _to_message_proto(message: ProtoMessage, syntax: str) -> descriptor_pb2.DescriptorProto:
    proto = descriptor_pb2.DescriptorProto(
        name=message.name,
        nested_type=[_to_message_proto(each, syntax) for each in message.messages],
        enum_type=[_to_enum_proto(each) for each in message.enums],
    )
    oneofs = list(dict.fromkeys(field.oneof for field in message.fields if field.oneof))
    # Presence of a plain field is a oneof of its own, after those of the text.
    has_presence = [
        field
        for field in message.fields
        if syntax == "proto3" and field.label == "optional" and not field.oneof
    ]
    oneofs += [f"_{field.name}" for field in has_presence]
    proto.oneof_decl.extend(descriptor_pb2.OneofDescriptorProto(name=name) for name in oneofs)
    for field in message.fields:
        field_proto = proto.field.add()
        _fill_field(field_proto, field)
        if field.key_type:
            field_proto.type_name = _add_map_entry(proto, field)
            field_proto.type = _FieldProto.TYPE_MESSAGE
            field_proto.label = _FieldProto.LABEL_REPEATED
        if field.oneof:
            field_proto.oneof_index = oneofs.index(field.oneof)
        elif field in has_presence:
            field_proto.oneof_index = oneofs.index(f"_{field.name}")
            field_proto.proto3_optional = True
    return proto


def _fill_field(proto: descriptor_pb2.FieldDescriptorProto, field: ProtoField) -> None:
    proto.name, proto.number = field.name, field.number
    proto.label = _LABELS.get(field.label, _FieldProto.LABEL_OPTIONAL)
    if field.key_type:
        return
    _set_type(proto, field.type_name)


def _set_type(proto: descriptor_pb2.FieldDescriptorProto, type_name: str) -> None:
    if type_name in _SCALARS:
        proto.type = _SCALARS[type_name]
    else:
        proto.type_name = type_name  # a message or an enum, as the pool finds out


def _add_map_entry(proto: descriptor_pb2.DescriptorProto, field: ProtoField) -> str:
    name = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
    entry = proto.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, type_name) in enumerate(
        (("key", field.key_type), ("value", field.type_name)), start=1
    ):
        part_proto = entry.field.add(name=part, number=number, label=_FieldProto.LABEL_OPTIONAL)
        _set_type(part_proto, type_name)
    return name


def _to_enum_proto(enum: ProtoEnum) -> descriptor_pb2.EnumDescriptorProto:
    proto = descriptor_pb2.EnumDescriptorProto(name=enum.name)
    proto.options.allow_alias = enum.has_aliases
    for name, number in enum.symbols:
        proto.value.add(name=name, number=number)
    if not enum.has_aliases:
        proto.ClearField("options")
    return proto
