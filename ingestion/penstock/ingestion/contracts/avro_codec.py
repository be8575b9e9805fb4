"""Avro codec in the wire format of schema registries: a zero byte, the schema id, the record."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastavro
import msgspec
import numpy as np

from penstock.ingestion.contracts.avro_columns import AvroColumnScan
from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.invalid_reasons import describe_size, make_invalid_record
from penstock.ingestion.contracts.json_codec import json_codec
from penstock.ingestion.contracts.record_formats.avro_format import AvroFormat
from penstock.ingestion.contracts.record_formats.record_format import FindSchemaById, KeyedRecords, Schema
from penstock.ingestion.contracts.record_formats.schema_header import (
    SCHEMA_HEADER_BYTES,
    KnownSchemas,
    make_schema_header,
)
from penstock.ingestion.contracts.schemas import to_avro_schema, without_logical_types
from penstock.ingestion.errors import InvalidRecordError

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
        self._header = make_schema_header(schema_id)
        self._known_schemas = KnownSchemas(find_schema, self._parse_writer_schema)
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
        writer_schema, _ = self._find_writer_schema(value)
        buffer = io.BytesIO(value)
        buffer.seek(SCHEMA_HEADER_BYTES)
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
            io.BytesIO(value[SCHEMA_HEADER_BYTES:]),
            writer_schema,
            self._schema,
            handle_unicode_errors="surrogateescape",
        )
        name = next((name for name, part in decoded.items() if not _is_utf8(part)), "")
        return make_invalid_record("invalid_utf8", error.reason, name)

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value starts with a zero byte, as no JSON does."""
        return value.startswith(b"\0")

    def find_keys(self, values: Sequence[bytes], max_value_bytes: int) -> KeyedRecords:
        """Find the keys of values that pass the columnar scan; the others are to be decoded."""
        keys: list[bytes | None] = [None] * len(values)
        unverified: list[int] = []
        for indexes in _group_by_schema(values):
            unverified += self._scan_columns(values, indexes, max_value_bytes, keys)
        return keys, sorted(unverified)

    def _scan_columns(
        self,
        values: Sequence[bytes],
        indexes: Sequence[int],
        max_value_bytes: int,
        keys: list[bytes | None],
    ) -> Sequence[int]:
        """Fill in the keys of values of one schema that pass the scan; return the indexes of the others."""
        try:
            _, fields = self._find_writer_schema(values[indexes[0]])
        except InvalidRecordError:
            return indexes
        selected = values if len(indexes) == len(values) else [values[index] for index in indexes]
        columns = AvroColumnScan(selected, fields, SCHEMA_HEADER_BYTES)
        is_valid = columns.valid_mask & (columns.lengths <= max_value_bytes)
        key_field = next((field for field in fields if field.name == self.contract.key), None)
        if key_field is not None:
            key_texts = columns.key_texts(key_field)
            if key_texts is None:
                return indexes
            for index, text in zip(indexes, key_texts, strict=True):
                keys[index] = text
        return [indexes[number] for number in np.flatnonzero(~is_valid).tolist()]

    def _find_writer_schema(self, value: bytes) -> tuple[Any, tuple[ContractField, ...]]:
        """Return the writer schema of a value and its fields; raise InvalidRecordError if it cannot be read."""
        found: tuple[Any, tuple[ContractField, ...]] = self._known_schemas.find_by_header(value)
        return found

    def _parse_writer_schema(self, schema: Schema) -> tuple[Any, tuple[ContractField, ...]] | None:
        fields = AvroFormat().find_readable_fields(schema, self.contract.topic, self.contract.fields)
        return None if fields is None else (fastavro.parse_schema(without_logical_types(schema)), fields)


def _group_by_schema(values: Sequence[bytes]) -> list[Sequence[int]]:
    """Return the indexes of the values, grouped by schema id."""
    headers = {value[:SCHEMA_HEADER_BYTES] for value in values}
    if len(headers) == 1:
        return [range(len(values))]
    return [
        [index for index, value in enumerate(values) if value[:SCHEMA_HEADER_BYTES] == header]
        for header in headers
    ]


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
