"""Contracts: one declaration per topic, and everything that is derived from it."""

from penstock.ingestion.contracts.catalog import (
    CATALOG,
    Declared,
    contract_from,
    contract_names,
    contracts,
    declared,
    load_contract,
    read_contract,
)
from penstock.ingestion.contracts.json_codec import JsonCodec, json_codec
from penstock.ingestion.contracts.model import Contract, Field, TopicLayout
from penstock.ingestion.contracts.records import record_type
from penstock.ingestion.contracts.types import Compatibility, Encoding

__all__ = [
    "CATALOG",
    "Compatibility",
    "Contract",
    "Declared",
    "Encoding",
    "Field",
    "JsonCodec",
    "TopicLayout",
    "contract_from",
    "contract_names",
    "contracts",
    "declared",
    "json_codec",
    "load_contract",
    "read_contract",
    "record_type",
]
