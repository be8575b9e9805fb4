"""Values of JSON Schema, exchanged with the serializers of Confluent."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.ingestion.contracts.format_contracts import make_contract
from tests.ingestion.registry_server import run_registry_server

from penstock.ingestion.contracts import ContractField, json_codec
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.registry import open_registry

FIELDS = (
    ContractField("id", "string", "."),
    ContractField("at", "timestamp", "."),
    ContractField("amount", "double", ".", required=False),
)
RECORD = {"id": "a", "at": 5, "amount": 2.5}
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def test_json_schema_is_exchanged_with_the_serializer_of_confluent(tmp_path: Path) -> None:
    contract = make_contract("json_schema", FIELDS)
    with run_registry_server(tmp_path) as url:
        registry, client = open_registry(url), SchemaRegistryClient({"url": url})
        form = create_record_format(contract, registry)
        value = form.encode(json_codec(contract).judge.convert(RECORD))
        schema = json.dumps(registry.list_versions("orders-value")[0].schema)
        read = JSONDeserializer(schema, schema_registry_client=client)(value, CONTEXT)
        assert read == RECORD
        serializer = JSONSerializer(schema, client, conf={"auto.register.schemas": True})
        written = serializer(RECORD, CONTEXT)
        record: Any = form.decode(written)
        assert (record.id, record.at, record.amount) == ("a", 5, 2.5)
