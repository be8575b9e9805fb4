"""Protobuf in the wire format of schema registries."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.contracts.record_formats.json_based_format import JsonBasedCodec, JsonBasedFormat
from penstock.ingestion.contracts.record_formats.record_format import (
    ContractProblem,
    FindSchemaById,
    ReadJson,
    RecordCodec,
    Schema,
)
from penstock.ingestion.contracts.record_formats.schema_header import (
    SCHEMA_HEADER_BYTES,
    KnownSchemas,
    make_schema_header,
)
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.contracts.schemas import PROTO_TEXT_KEY
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.protobuf.message_types import MessageTypes

_MAX_INDEXES = 32


class ProtobufFormat(JsonBasedFormat):
    """A value is a zero byte, the id of its schema, the indexes of the message in the schema, and the message.

    A message is read by the schema that it was written with. Its values are those of a JSON record, which the
    contract judges.
    """

    keyword = "protobuf"
    description = "a zero byte, the id of the schema in the registry, the index of the message, the message"
    keeps_unknown_fields = False

    def find_problems(self, contract: Contract) -> Iterator[ContractProblem]:
        """Yield why the fields cannot be those of a message, as two names that differ in underscores only."""
        from penstock.ingestion.contracts.protobuf.message_types import MessageTypes

        yield from super().find_problems(contract)
        try:
            text = self.to_schema(contract)[PROTO_TEXT_KEY]
        except ContractError:
            return  # a type is unknown, which is a problem of every format
        try:
            MessageTypes(text)
        except ContractError as error:
            yield "fields", f"cannot be written in Protobuf: {str(error).rstrip('.')}"

    def to_schema(self, contract: Contract, earlier_schemas: Sequence[Schema] = ()) -> Schema:
        """Return the text of the schema, with the field numbers of the earlier ones."""
        from penstock.ingestion.contracts.protobuf.proto_text import to_proto_text

        texts = [schema[PROTO_TEXT_KEY] for schema in earlier_schemas if PROTO_TEXT_KEY in schema]
        return {PROTO_TEXT_KEY: to_proto_text(contract, texts)}

    def find_readable_fields(
        self, schema: Schema, _topic: str, _reader: Sequence[ContractField]
    ) -> tuple[ContractField, ...] | None:
        """Return no fields, for each record is judged; None if the schema cannot be used."""
        return None if _parse_types(schema) is None else ()

    def open_reader(self, rules: RecordRules, find_schema: FindSchemaById) -> ReadJson:
        """Return the function that returns a message as JSON."""
        return _MessageJsonReader(rules, find_schema).read_json

    def make_codec(
        self, contract: Contract, schema_id: int, read_json: ReadJson, find_schema: FindSchemaById
    ) -> RecordCodec:
        """Return the codec."""
        return _ProtobufCodec(contract, schema_id, read_json, find_schema)


class _MessageJsonReader:
    """Reads messages of every schema of a topic."""

    def __init__(self, rules: RecordRules, find_schema: FindSchemaById) -> None:
        self._fields = rules.fields
        self._known_schemas = KnownSchemas(find_schema, _parse_types)
        self._readers: dict[tuple[int, bytes], Any] = {}

    def read_json(self, value: bytes) -> bytes:
        """Return the JSON of a message; raise InvalidRecordError."""
        types: MessageTypes = self._known_schemas.find_by_header(value)
        indexes, start = _read_indexes(value)
        key = (id(types), value[SCHEMA_HEADER_BYTES:start])
        if key not in self._readers:
            self._readers[key] = self._make_reader(types, indexes)
        message_type, reader = self._readers[key]
        from google.protobuf.message import DecodeError

        try:
            return msgspec.json.encode(reader.read(message_type.FromString(value[start:])))
        except (DecodeError, ValueError) as error:
            # A ValueError is a timestamp of Protobuf outside of the years 1 to 9999.
            raise make_invalid_record("malformed", str(error)) from error

    def _make_reader(self, types: "MessageTypes", indexes: Sequence[int]) -> Any:
        from penstock.ingestion.contracts.protobuf.message_json import MessageReader
        from penstock.ingestion.contracts.protobuf.proto_text import list_members

        message_type = types.find_type(indexes)
        if message_type is None:
            raise make_invalid_record("wrong_schema", f"the schema has no message at index {list(indexes)}")
        return message_type, MessageReader(message_type.DESCRIPTOR, list_members(self._fields))


class _ProtobufCodec(JsonBasedCodec):
    """Writes the first message of the registered schema."""

    def __init__(
        self, contract: Contract, schema_id: int, read_json: ReadJson, find_schema: FindSchemaById
    ) -> None:
        from penstock.ingestion.contracts.protobuf.proto_text import list_members

        super().__init__(contract, read_json)
        self._header = make_schema_header(schema_id) + b"\0"
        self._members = list_members(contract.fields)
        schema = find_schema(schema_id)
        types = None if schema is None else _parse_types(schema)
        self._message_type = None if types is None else types.find_type([0])

    def write(self, record: msgspec.Struct) -> bytes:
        """Return the header, the index of the message, and the message."""
        from penstock.ingestion.contracts.protobuf.message_json import write_members

        if self._message_type is None:
            raise ContractError(
                f"The schema of {self.contract.topic} is not registered. Register it before records are written."
            )
        message = self._message_type()
        write_members(message, msgspec.to_builtins(record, builtin_types=(bytes,)), self._members)
        encoded: bytes = message.SerializeToString(deterministic=True)
        return self._header + encoded


def _parse_types(schema: Schema) -> "MessageTypes | None":
    """Return the messages of a schema, or None if it is no Protobuf that can be used."""
    # Imported late: every command loads contracts, and few need Protobuf.
    from penstock.ingestion.contracts.protobuf.message_types import MessageTypes

    try:
        return MessageTypes(schema[PROTO_TEXT_KEY])
    except (ContractError, KeyError):
        return None


def _read_indexes(value: bytes) -> tuple[Sequence[int], int]:
    """Return the indexes of the message, and where the message starts; a single zero byte is the first message."""
    count, position = _read_varint(value, SCHEMA_HEADER_BYTES)
    if not 0 <= count <= _MAX_INDEXES:
        raise make_invalid_record("malformed", f"the value has {count} indexes of messages")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(value, position)
        indexes.append(index)
    return indexes or [0], position


def _read_varint(value: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag number, and the position after it."""
    total, shift = 0, 0
    while position < len(value) and shift < 35:
        byte = value[position]
        position += 1
        total |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (total >> 1) ^ -(total & 1), position
    raise make_invalid_record("malformed", "the index of the message is incomplete")
