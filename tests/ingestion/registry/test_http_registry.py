import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.ingestion.registry_server import run_registry_server

from penstock.core.secret import Secret
from penstock.infra.ports import find_free_ports
from penstock.ingestion.contracts import Contract, ContractField, load_contract
from penstock.ingestion.contracts.schemas import to_avro_schema
from penstock.ingestion.errors import IncompatibleChangeError, RegistryError
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.registry import FileRegistry, open_registry, register_contract

SENSORS_AVRO = dataclasses.replace(load_contract("sensors"), encoding="avro")
RECORD = {
    "id": "a",
    "device": "dö",
    "site": "s",
    "at": 1_700_000_000_000,
    "temperature": 2.5,
    "humidity": None,
}


def add_unit_field(*, required: bool) -> Contract:
    return dataclasses.replace(
        SENSORS_AVRO, fields=(*SENSORS_AVRO.fields, ContractField("unit", "string", "U.", required))
    )


def test_an_http_registry_answers_like_a_file_registry(tmp_path: Path):
    with run_registry_server(tmp_path) as url:
        over_http, in_folder = open_registry(url), FileRegistry(tmp_path)
        assert over_http.list_versions("sensors-value") == ()
        assert over_http.find_schema(1) is None
        first = register_contract(over_http, SENSORS_AVRO)
        wider = add_unit_field(required=False)
        assert register_contract(over_http, wider).version == 2
        assert register_contract(over_http, SENSORS_AVRO) == first
        assert over_http.list_versions("sensors-value") == in_folder.list_versions("sensors-value")
        with pytest.raises(IncompatibleChangeError, match="'unit'"):
            register_contract(over_http, add_unit_field(required=True))


def test_records_are_compatible_with_the_confluent_serializer(tmp_path: Path):
    with run_registry_server(tmp_path) as url:
        record_format = create_record_format(SENSORS_AVRO, open_registry(url))
        encoded = record_format.checker.check(SourceBatch([json.dumps(RECORD).encode()])).values[0]
        client = SchemaRegistryClient({"url": url})
        context = SerializationContext("sensors", MessageField.VALUE)
        read = {**RECORD, "at": datetime.fromtimestamp(RECORD["at"] / 1000, UTC)}  # a logical type of Avro
        assert AvroDeserializer(client)(encoded, context) == read
        schema = json.dumps(to_avro_schema(SENSORS_AVRO))
        written = AvroSerializer(client, schema)(RECORD, context)
        assert written == encoded
        assert msgspec.to_builtins(record_format.decode(written)) == {
            k: v for k, v in RECORD.items() if v is not None
        }
        batch = record_format.checker.check(SourceBatch([written], is_encoded=True))
        assert (batch.keys, batch.invalid) == (["dö".encode()], {})


def test_an_unreachable_registry_is_reported_with_its_address():
    (port,) = find_free_ports(1)
    with pytest.raises(RegistryError, match=f"{port}.*Check that it is up"):
        open_registry(f"http://127.0.0.1:{port}").list_versions("sensors-value")


def test_a_registry_login_is_sent_and_a_wrong_one_is_reported(tmp_path: Path):
    with run_registry_server(tmp_path, login="penstock:canary-c0de") as url:
        assert (
            register_contract(open_registry(url, Secret("penstock:canary-c0de")), SENSORS_AVRO).version == 1
        )
        for login in (None, Secret("penstock:wrong")):
            with pytest.raises(RegistryError, match=r"refused the login .* kafka\.registry_login"):
                open_registry(url, login).list_versions("sensors-value")
            with pytest.raises(RegistryError, match="refused the login"):
                open_registry(url, login).register("sensors-value", to_avro_schema(SENSORS_AVRO))
