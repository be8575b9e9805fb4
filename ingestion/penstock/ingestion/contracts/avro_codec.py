"""Avro codec in the wire format of schema registries: a zero byte, the schema id, the record."""

import io
import struct
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import msgspec

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.invalid_reasons import describe_size, make_invalid_record
from penstock.ingestion.contracts.json_codec import json_codec
from penstock.ingestion.contracts.readable_schemas import find_readable_fields
from penstock.ingestion.contracts.schemas import Schema, to_avro_schema, without_logical_types
from penstock.ingestion.errors import InvalidRecordError

_HEADER_STRUCT = struct.Struct(">BI")
AVRO_HEADER_BYTES = _HEADER_STRUCT.size
FindSchemaById = Callable[[int], Schema | None]
ConvertValue = Callable[[Any], Any]


class AvroCodec:
    """Encodes with one schema id; decodes records of every registered schema that the contract can read.

    `find_schema` finds a schema by its id, as a registry does. It is called once for each id.
    """

    def __init__(self, contract: Contract, schema_id: int, find_schema: FindSchemaById) -> None:
        self.contract = contract
        self._schema = fastavro.parse_schema(without_logical_types(to_avro_schema(contract)))
        self._encoders = _select_converters(contract, lambda field_type: field_type.avro_encoder)
        self._decoders = _select_converters(contract, lambda field_type: field_type.avro_decoder)
        self._header = _HEADER_STRUCT.pack(0, schema_id)
        self._find_schema = find_schema
        self._writer_schemas: dict[int, tuple[Any, tuple[ContractField, ...]] | None] = {}
        self._judge = json_codec(contract).judge

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the encoded value of a record. A mapping is validated first."""
        if isinstance(record, Mapping):
            record = self._judge.convert(record)
        buffer = io.BytesIO()
        buffer.write(self._header)
        fastavro.schemaless_writer(
            buffer, self._schema, _convert_values(msgspec.structs.asdict(record), self._encoders)
        )
        return buffer.getvalue()

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the decoded record; raise InvalidRecordError with the reason if it is invalid."""
        limit = self.contract.max_bytes
        if len(value) > limit:
            raise describe_size(len(value), limit)
        writer_schema, _ = self.find_writer_schema(_read_schema_id(value))
        buffer = io.BytesIO(value)
        buffer.seek(AVRO_HEADER_BYTES)
        try:
            decoded: Any = fastavro.schemaless_reader(buffer, writer_schema, self._schema)
        except UnicodeDecodeError as error:
            raise self._describe_invalid_text(value, writer_schema, error) from error
        except (EOFError, LookupError, ValueError, TypeError, OverflowError, MemoryError) as error:
            raise make_invalid_record("malformed", f"{type(error).__name__}: {error}") from error
        if buffer.tell() != len(value):
            raise make_invalid_record(
                "malformed", f"{len(value) - buffer.tell()} extra bytes after the record"
            )
        return self._judge.convert(_convert_values(decoded, self._decoders))

    def _describe_invalid_text(
        self, value: bytes, writer_schema: Any, error: UnicodeDecodeError
    ) -> InvalidRecordError:
        """Return the error for text that is not UTF-8, with its field."""
        decoded: Any = fastavro.schemaless_reader(
            io.BytesIO(value[AVRO_HEADER_BYTES:]),
            writer_schema,
            self._schema,
            handle_unicode_errors="surrogateescape",
        )
        name = next((name for name, part in decoded.items() if not _is_utf8(part)), "")
        return make_invalid_record("invalid_utf8", error.reason, name)

    def find_writer_schema(self, schema_id: int) -> tuple[Any, tuple[ContractField, ...]]:
        """Return a writer schema and its fields; raise InvalidRecordError if the contract cannot read it."""
        if schema_id not in self._writer_schemas:
            self._writer_schemas[schema_id] = self._load_writer_schema(schema_id)
        writer_schema = self._writer_schemas[schema_id]
        if writer_schema is None:
            raise make_invalid_record(
                "wrong_schema",
                f"schema {schema_id} is not registered, or this contract cannot read it",
            )
        return writer_schema

    def _load_writer_schema(self, schema_id: int) -> tuple[Any, tuple[ContractField, ...]] | None:
        schema = self._find_schema(schema_id)
        if schema is None:
            return None
        fields = find_readable_fields(schema, self.contract.topic, self.contract.fields)
        return None if fields is None else (fastavro.parse_schema(without_logical_types(schema)), fields)


def _select_converters(
    contract: Contract, select: Callable[[FieldType], ConvertValue | None]
) -> Mapping[str, ConvertValue]:
    """Return a function for each field whose Avro values are not those of the record."""
    selected = {field.name: select(field.parsed_type) for field in contract.fields}
    return {name: convert for name, convert in selected.items() if convert is not None}


def _convert_values(values: dict[str, Any], converters: Mapping[str, ConvertValue]) -> dict[str, Any]:
    for name, convert in converters.items():
        if values[name] is not None:
            values[name] = convert(values[name])
    return values


def _is_utf8(value: Any) -> bool:
    """Whether all text in a value is valid; other bytes were decoded as surrogates."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


def _read_schema_id(value: bytes) -> int:
    if len(value) < AVRO_HEADER_BYTES or value[0] != 0:
        raise make_invalid_record("wrong_schema", "the value does not start with a zero byte and a schema id")
    schema_id: int = _HEADER_STRUCT.unpack_from(value)[1]
    return schema_id
