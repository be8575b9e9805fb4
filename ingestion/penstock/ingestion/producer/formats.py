"""How the records of a contract are checked and encoded, by its encoding."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.producer.avro_checking import AvroChecker
from penstock.ingestion.producer.checking import Checker, JsonChecker
from penstock.ingestion.registry import Registry, register_contract


@dataclass(frozen=True, slots=True)
class Format:
    """What checks records that come in, and what encodes and decodes them."""

    checker: Checker
    encode: Callable[[msgspec.Struct], bytes]
    decode: Callable[[bytes], msgspec.Struct]


def format_of(contract: Contract, registry: Registry | None = None) -> Format:
    """Return the format of a contract; one in Avro is registered first, and refused if it is incompatible."""
    json = json_codec(contract)
    if contract.encoding == "json":
        if registry is not None:
            register_contract(registry, contract)
        return Format(JsonChecker(contract), json.encode, json.decode)
    if registry is None:
        raise RegistryError(f"contract {contract.topic} is in Avro, which needs a schema registry; name one")
    registered = register_contract(registry, contract)
    codec = AvroCodec(contract, registered.id, registry.schema)
    return Format(AvroChecker(codec), codec.encode, codec.decode)
