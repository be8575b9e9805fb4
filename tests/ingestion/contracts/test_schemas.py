import pytest

from penstock.ingestion.contracts import (
    Contract,
    load_contracts,
)
from penstock.ingestion.contracts.schemas import parse_schema_fields, to_avro_schema, to_json_schema


@pytest.mark.parametrize("contract", load_contracts(), ids=lambda contract: contract.topic)
def test_a_contract_is_restored_from_its_schemas(contract: Contract):
    assert parse_schema_fields(to_json_schema(contract)) == contract.fields
    assert parse_schema_fields(to_avro_schema(contract)) == contract.fields
