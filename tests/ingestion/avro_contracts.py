"""Contracts in Avro, and encoded records of them."""

import dataclasses
from itertools import islice

from penstock.ingestion.contracts import (
    Contract,
    ContractField,
    load_contract,
)
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.contracts.schemas import to_avro_schema
from penstock.ingestion.generators import SensorGenerator, make_even_send_times


def as_avro(contract: Contract) -> Contract:
    return dataclasses.replace(contract, encoding="avro")


SENSORS_AVRO = as_avro(load_contract("sensors"))


def make_codec(contract: Contract = SENSORS_AVRO) -> AvroCodec:
    return AvroCodec(contract, 1, {1: to_avro_schema(contract)}.get)


def encode_readings(number: int) -> list[bytes]:
    encoded = islice(
        SensorGenerator(1).generate_records(0, make_even_send_times(1_700_000_000_000, 1_000)), number
    )
    return [make_codec().encode(record) for record in encoded]


ODD_CONTRACT = Contract(
    "odd",
    "Odd.",
    (
        ContractField("text", "string", "T."),
        ContractField("maybe", "string", "M.", required=False),
        ContractField("many", "array<string>", "M.", required=False),
        ContractField("deep", "array<array<int>>", "D."),
        ContractField("yes", "boolean", "Y."),
        ContractField("at", "timestamp", "A."),
        ContractField("small", "float", "S.", required=False),
    ),
    key="text",
    encoding="avro",
)
