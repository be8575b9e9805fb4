"""Validation and codecs of a contract, by the format of its records."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.contracts.record_formats.record_format import FindSchemaById, Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.producer.checker import JsonChecker, RecordChecker
from penstock.ingestion.producer.encoding_checker import EncodingChecker
from penstock.ingestion.registry import SchemaRegistry, contract_subject, register_contract


@dataclass(frozen=True, slots=True)
class RecordSerde:
    """The checker, the serializer and the deserializer of the records of a contract."""

    checker: RecordChecker
    encode: Callable[[msgspec.Struct], bytes]
    decode: Callable[[bytes], msgspec.Struct]
    decode_any: Callable[[bytes], msgspec.Struct]
    """Decodes a value in the format of the topic, or a plain JSON record, which the producer would encode."""


def create_reading_checker(contract: Contract, registry: SchemaRegistry) -> RecordChecker:
    """Return a checker for values that are in the topic, without registering a schema."""
    return create_reading_serde(contract, registry).checker


def create_reading_serde(contract: Contract, registry: SchemaRegistry) -> RecordSerde:
    """Return the serde of values that are in the topic, without registering a schema. It is for decoding only."""
    return _create_serde(contract, 0, find_schemas_of_topic(contract, registry))


def create_json_reader(contract: Contract, registry: SchemaRegistry) -> Callable[[bytes], bytes]:
    """Return a function that returns a value of the topic as the JSON of its record.

    The function raises InvalidRecordError or IgnoredRecordError. No schema is registered.
    """
    decode = _create_serde(contract, 0, find_schemas_of_topic(contract, registry)).decode
    return lambda value: json_codec(contract).encode(decode(value))


def create_record_format(contract: Contract, registry: SchemaRegistry | None = None) -> RecordSerde:
    """Register the schema of a contract, unless it has no registry, and return the serde of its records."""
    if registry is not None:
        registered = register_contract(registry, contract)
        return _create_serde(contract, registered.id, find_schemas_of_topic(contract, registry))
    if find_record_format(contract.encoding).has_writer_schemas:
        raise RegistryError(
            f"Contract {contract.topic} has the encoding {contract.encoding}, which requires a schema registry. "
            "Configure one."
        )
    return _create_serde(contract, 0, lambda _schema_id: None)


def find_schemas_of_topic(contract: Contract, registry: SchemaRegistry) -> FindSchemaById:
    """Return a lookup of schemas by id, among those that are registered for the topic."""
    known: dict[int, Schema] = {}

    def find_schema(schema_id: int) -> Schema | None:
        if schema_id not in known:
            versions = registry.list_versions(contract_subject(contract))
            known.update({version.id: version.schema for version in versions})
        return known.get(schema_id)

    return find_schema


def _create_serde(contract: Contract, schema_id: int, find_schema: FindSchemaById) -> RecordSerde:
    record_format = find_record_format(contract.encoding)
    codec = record_format.create_codec(contract, schema_id, find_schema)
    checker = JsonChecker(contract) if record_format.has_plain_values else EncodingChecker(codec)
    decode_json = json_codec(contract).decode

    def decode_any(value: bytes) -> msgspec.Struct:
        return codec.decode(value) if codec.is_encoded(value) else decode_json(value)

    return RecordSerde(checker, codec.encode, codec.decode, decode_any)
