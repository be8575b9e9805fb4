"""Records as Avro in the wire format of schema registries: a zero byte, the schema's id, the record."""

import io
import struct
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import msgspec

from penstock.ingestion.contracts.json_codec import json_codec
from penstock.ingestion.contracts.model import Contract, Field
from penstock.ingestion.contracts.readable import readable_fields
from penstock.ingestion.contracts.schemas import Schema, avro_schema
from penstock.ingestion.errors import BrokenRecordError

_HEADER = struct.Struct(">BI")
HEADER_BYTES = _HEADER.size
SchemaOf = Callable[[int], Schema | None]


class AvroCodec:
    """Encodes under one schema id, and decodes records of every registered schema that the contract can read.

    `schema_of` finds schemas by their id, as a registry does; each is asked for once.
    """

    def __init__(self, contract: Contract, schema_id: int, schema_of: SchemaOf) -> None:
        self.contract = contract
        self._schema = fastavro.parse_schema(dict(avro_schema(contract)))
        self._head = _HEADER.pack(0, schema_id)
        self._schema_of = schema_of
        self._writers: dict[int, tuple[Any, tuple[Field, ...]] | None] = {}
        self._records = json_codec(contract)

    def encode(self, record: msgspec.Struct | Mapping[str, Any]) -> bytes:
        """Return the value of a record; a mapping is checked first."""
        if isinstance(record, Mapping):
            record = self._records.check(record)
        buffer = io.BytesIO()
        buffer.write(self._head)
        fastavro.schemaless_writer(buffer, self._schema, msgspec.structs.asdict(record))
        return buffer.getvalue()

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the record, or raise BrokenRecordError with the reason."""
        limit = self.contract.max_bytes
        if len(value) > limit:
            raise BrokenRecordError("too large", f"{len(value)} bytes, and the contract allows {limit}")
        writer, _ = self.writer(_schema_id(value))
        buffer = io.BytesIO(value)
        buffer.seek(HEADER_BYTES)
        try:
            found: Any = fastavro.schemaless_reader(buffer, writer, self._schema)
        except UnicodeDecodeError as error:
            raise BrokenRecordError("invalid utf-8", str(error)) from error
        except (EOFError, LookupError, ValueError, TypeError, OverflowError, MemoryError) as error:
            raise BrokenRecordError("malformed", f"{type(error).__name__}: {error}") from error
        if buffer.tell() != len(value):
            raise BrokenRecordError("malformed", f"{len(value) - buffer.tell()} bytes follow the record")
        return self._records.check(found)

    def writer(self, schema_id: int) -> tuple[Any, tuple[Field, ...]]:
        """Return the schema of an id and its fields, or raise BrokenRecordError if it is not for this contract."""
        if schema_id not in self._writers:
            self._writers[schema_id] = self._readable(schema_id)
        found = self._writers[schema_id]
        if found is None:
            raise BrokenRecordError(
                "wrong schema",
                f"schema {schema_id} is not registered, or is not one that this contract reads",
            )
        return found

    def _readable(self, schema_id: int) -> tuple[Any, tuple[Field, ...]] | None:
        schema = self._schema_of(schema_id)
        if schema is None:
            return None
        fields = readable_fields(schema, self.contract.topic, self.contract.fields)
        return None if fields is None else (fastavro.parse_schema(dict(schema)), fields)


def _schema_id(value: bytes) -> int:
    if len(value) < HEADER_BYTES or value[0] != 0:
        raise BrokenRecordError("wrong schema", "it does not begin with a zero byte and a schema id")
    found: int = _HEADER.unpack_from(value)[1]
    return found
