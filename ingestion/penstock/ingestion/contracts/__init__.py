"""Contracts: one YAML declaration for each topic, and the types, codecs and schemas that follow from it."""

from penstock.ingestion.contracts.catalog import (
    CATALOG_FOLDER,
    LoadedCatalog,
    list_contract_names,
    load_catalog,
    load_contract,
    load_contracts,
    read_contract,
)
from penstock.ingestion.contracts.contract import (
    Contract,
    ContractField,
    TopicLayout,
    dead_letter_topic,
    is_dead_letter_topic,
)
from penstock.ingestion.contracts.contract_modes import CompatibilityMode
from penstock.ingestion.contracts.contract_parser import parse_contract
from penstock.ingestion.contracts.future_skew import UNLIMITED, FutureSkewLimit, Unlimited
from penstock.ingestion.contracts.json_codec import JsonCodec, json_codec
from penstock.ingestion.contracts.record_types import record_type

__all__ = [
    "CATALOG_FOLDER",
    "UNLIMITED",
    "CompatibilityMode",
    "Contract",
    "ContractField",
    "FutureSkewLimit",
    "JsonCodec",
    "LoadedCatalog",
    "TopicLayout",
    "Unlimited",
    "dead_letter_topic",
    "is_dead_letter_topic",
    "json_codec",
    "list_contract_names",
    "load_catalog",
    "load_contract",
    "load_contracts",
    "parse_contract",
    "read_contract",
    "record_type",
]
