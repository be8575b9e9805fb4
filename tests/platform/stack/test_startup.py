"""Starting the local stack."""

import dataclasses
from pathlib import Path

import pytest

from penstock.ingestion.contracts import load_catalog, load_contract
from penstock.ingestion.registry import check_registration
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.settings import load_settings
from penstock.platform.stack.startup import register_schemas


def test_a_start_registers_every_schema_and_names_those_that_break_an_earlier_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    settings, contracts = load_settings().settings, load_catalog().contracts
    assert register_schemas(settings, contracts) == {}
    registry = open_schema_registry(settings)
    assert {check_registration(registry, contract) for contract in contracts} == {None}
    sensors, cards = load_contract("sensors"), load_contract("cards")
    fields = [
        dataclasses.replace(field, type="int") if field.name == "site" else field for field in sensors.fields
    ]
    problems = register_schemas(settings, [dataclasses.replace(sensors, fields=tuple(fields)), cards])
    assert list(problems) == ["sensors"]
    assert "field 'site' breaks backward compatibility" in str(problems["sensors"])
