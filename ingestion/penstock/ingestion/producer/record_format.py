"""Record formats: validation and codecs of a contract, by its encoding."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.producer.avro_checker import AvroChecker
from penstock.ingestion.producer.checker import JsonChecker, RecordChecker
from penstock.ingestion.registry import SchemaRegistry, register_contract


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """The checker, encoder and decoder of records."""

    checker: RecordChecker
    encode: Callable[[msgspec.Struct], bytes]
    decode: Callable[[bytes], msgspec.Struct]


def create_reading_checker(contract: Contract, registry: SchemaRegistry) -> RecordChecker:
    """Return a checker for values that are in the topic, without registering a schema."""
    if contract.encoding == "json":
        return JsonChecker(contract)
    return AvroChecker(AvroCodec(contract, 0, registry.find_schema))


def create_record_format(contract: Contract, registry: SchemaRegistry | None = None) -> RecordFormat:
    """Register the schema of a contract, unless it has no registry, and return its format."""
    plain_codec = json_codec(contract)
    if contract.encoding == "json":
        if registry is not None:
            register_contract(registry, contract)
        return RecordFormat(JsonChecker(contract), plain_codec.encode, plain_codec.decode)
    if registry is None:
        raise RegistryError(
            f"Contract {contract.topic} uses Avro, which requires a schema registry. Configure one."
        )
    registered = register_contract(registry, contract)
    codec = AvroCodec(contract, registered.id, registry.find_schema)
    return RecordFormat(AvroChecker(codec), codec.encode, codec.decode)
