"""Contracts in each format of records, and their codecs."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.contracts.record_formats.format_discovery import RECORD_FORMATS, find_record_format
from penstock.ingestion.contracts.record_formats.record_format import RecordCodec, Schema

FORMATS = tuple(RECORD_FORMATS.kinds_by_name)


def make_contract(encoding: str, fields: Sequence[ContractField], **options: Any) -> Contract:
    """Return a contract with what its format needs."""
    if encoding == "debezium":
        options.setdefault("deletes", "ignore")
    return Contract(options.pop("topic", "orders"), "", tuple(fields), encoding=encoding, **options)


def make_schemas(contract: Contract) -> Mapping[int, Schema]:
    """Return the schema of a contract under the id 1."""
    return {1: find_record_format(contract.encoding).to_schema(contract)}


def make_format_codec(contract: Contract, schemas: Mapping[int, Schema] | None = None) -> RecordCodec:
    """Return the codec of a contract, which encodes with the schema 1."""
    found = make_schemas(contract) if schemas is None else schemas
    return find_record_format(contract.encoding).create_codec(contract, 1, found.get)


def without_empty_parts(value: Any) -> Any:
    """Return a stored value without its empty arrays and maps, which Protobuf does not tell from absent ones."""
    if isinstance(value, dict):
        return {name: without_empty_parts(part) for name, part in value.items()} or None
    return None if value == [] else value
