"""`penstock contract`: documents of the Open Data Contract Standard, out and in."""

from pathlib import Path

import pytest
import yaml

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.contracts.catalog import read_contract

FOREIGN_DOCUMENT = Path(__file__).parents[2] / "ingestion" / "contracts" / "foreign.odcs.yaml"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty catalog."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    monkeypatch.setattr("penstock.ingestion.contracts.CATALOG_FOLDER", folder)
    return folder


def test_an_exported_contract_is_imported_as_an_equal_one(run, tmp_path: Path, catalog: Path) -> None:
    document = tmp_path / "sensors.odcs.yaml"
    document.write_text(run("contract", "export", "sensors", "--format", "odcs").out, "utf-8")
    result = run("contract", "import", str(document))
    assert result.code == 0
    assert "penstock topics plan" in result.out
    assert repr(read_contract(catalog / "sensors.yaml")) == repr(load_contract("sensors"))
    assert [line.split()[0] for line in result.err.splitlines()[1:]] == ["servers.kafka.host"]


def test_print_writes_no_file_and_lists_the_losses_on_the_error_output(run, catalog: Path) -> None:
    result = run("contract", "import", str(FOREIGN_DOCUMENT), "--print")
    assert result.code == 0
    assert yaml.safe_load(result.out)["topic"] == "payments.v1"
    assert "classification" not in result.err
    assert (
        '  version ("1.1.0"): not imported; the schema registry numbers the versions'
        in result.err.splitlines()
    )
    assert list(catalog.iterdir()) == []


def test_a_contract_is_replaced_only_if_asked_twice(run, catalog: Path) -> None:
    contract = catalog / "payments.v1.yaml"
    contract.write_text("mine", "utf-8")
    for options, message in (
        ((), "--replace"),
        (("--replace",), "Repeat with --yes payments.v1"),
        (("--replace", "--yes", "other"), "nothing was changed"),
        (("--yes", "payments.v1"), "--replace"),
    ):
        refused = run("contract", "import", str(FOREIGN_DOCUMENT), *options)
        assert (refused.code, message in refused.err) == (2, True), refused.err
        assert contract.read_text("utf-8") == "mine"
    assert run("contract", "import", str(FOREIGN_DOCUMENT), "--replace", "--yes", "payments.v1").code == 0
    assert read_contract(contract).owner == "owner@shop.example"


def test_a_file_that_is_no_contract_is_refused_with_its_name(run, tmp_path: Path, catalog: Path) -> None:
    for text, message in (("kind: Other\n", "kind: DataContract"), ("a: [", "not valid YAML")):
        file = tmp_path / "wrong.yaml"
        file.write_text(text, "utf-8")
        refused = run("contract", "import", str(file))
        assert (refused.code, message in refused.err, "wrong.yaml" in refused.err) == (2, True, True)
    assert list(catalog.iterdir()) == []


def test_export_of_an_unknown_topic_suggests_the_nearest(run) -> None:
    refused = run("contract", "export", "sensor")
    assert refused.code == 2
    assert "sensors" in refused.err
