"""A schema registry in a folder."""

import dataclasses
from pathlib import Path

import pytest
from tests.ingestion.avro_contracts import SENSORS_AVRO

from penstock.ingestion.contracts import (
    ContractField,
)
from penstock.ingestion.errors import IncompatibleChangeError, RegistryError
from penstock.ingestion.registry import FileRegistry, register_contract


def test_an_incompatible_change_is_refused_with_the_field_and_the_rule(tmp_path: Path):
    registry = FileRegistry(tmp_path)
    first = register_contract(registry, SENSORS_AVRO)
    assert register_contract(registry, SENSORS_AVRO) == first
    required = dataclasses.replace(
        SENSORS_AVRO, fields=(*SENSORS_AVRO.fields, ContractField("unit", "string", "The unit."))
    )
    with pytest.raises(IncompatibleChangeError, match="'unit' breaks backward"):
        register_contract(registry, required)
    optional = dataclasses.replace(
        SENSORS_AVRO,
        fields=(*SENSORS_AVRO.fields, ContractField("unit", "string", "The unit.", required=False)),
    )
    assert register_contract(registry, optional).version == 2
    dropped = dataclasses.replace(
        SENSORS_AVRO,
        fields=tuple(f for f in SENSORS_AVRO.fields if f.name != "site"),
        compatibility="forward",
    )
    with pytest.raises(IncompatibleChangeError, match="'site' breaks forward"):
        register_contract(registry, dropped)
    assert [schema.version for schema in registry.list_versions("sensors-value")] == [1, 2]


def test_a_damaged_registry_is_refused(tmp_path: Path):
    register_contract(FileRegistry(tmp_path), SENSORS_AVRO)
    (tmp_path / "schemas.json").write_text('{"schemas": {')
    with pytest.raises(RegistryError, match="Restore"):
        FileRegistry(tmp_path).list_versions("sensors-value")


def test_another_encoding_of_a_topic_is_refused(tmp_path: Path) -> None:
    registry = FileRegistry(tmp_path)
    register_contract(registry, dataclasses.replace(SENSORS_AVRO, encoding="json"))
    with pytest.raises(
        IncompatibleChangeError,
        match=r"its records are JSON, and encoding: avro reads AVRO only. Use a new topic",
    ):
        register_contract(registry, SENSORS_AVRO)
    accepted = dataclasses.replace(SENSORS_AVRO, compatibility="none")
    assert register_contract(registry, accepted).version == 2
