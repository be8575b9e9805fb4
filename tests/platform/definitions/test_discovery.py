"""Definitions are found in the modules of a package, and merged."""

import sys
from pathlib import Path

import pytest
from dagster import AssetKey

from penstock.platform import definitions
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.discovery import PACKAGE, find_definition_builders, merge_definitions
from penstock.platform.settings import load_settings

NEW_KIND = """
from dagster import AssetSpec, Definitions

def build_definitions(context):
    return Definitions(assets=[AssetSpec("{asset}", owners=[context.settings.dagster.owner])])
"""
NO_KIND = "def build_something_else(context):\n    raise AssertionError\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Creates a package with a kind in its folder, a kind in a subfolder, and a module without one."""
    folder = tmp_path / "found_definitions"
    (folder / "below").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "zebra": NEW_KIND.format(asset="zebra"),
        "helpers": NO_KIND,
        "below/__init__": "",
        "below/ant": NEW_KIND.format(asset="ant"),
    }.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("", ".zebra", ".helpers", ".below", ".below.ant"):
        monkeypatch.delitem(sys.modules, f"found_definitions{module}", raising=False)
    return "found_definitions"


def test_a_new_module_adds_definitions(package: str) -> None:
    settings = load_settings().settings
    graph = merge_definitions(DefinitionsContext(settings), package).resolve_asset_graph()
    assert sorted(graph.get_all_asset_keys()) == [AssetKey("ant"), AssetKey("zebra")]
    assert graph.get(AssetKey("ant")).owners == [settings.dagster.owner]


def test_builders_are_sorted_by_module(package: str) -> None:
    modules = [module for module, _ in find_definition_builders(package)]
    assert modules == ["found_definitions.below.ant", "found_definitions.zebra"]


def test_every_module_with_a_builder_is_found_once() -> None:
    folder = Path(str(definitions.__file__)).parent
    expected = [
        ".".join(file.relative_to(folder).with_suffix("").parts)
        for file in folder.rglob("*.py")
        if "\ndef build_definitions(" in file.read_text()
    ]
    modules = [module.removeprefix(f"{PACKAGE}.") for module, _ in find_definition_builders()]
    assert modules == sorted(expected)
    assert {"catalog_definitions", "streams.audit_checks", "topics.topic_drift"} <= set(modules)


def test_a_context_opens_and_loads_nothing_before_it_is_used() -> None:
    context = DefinitionsContext(load_settings().settings)
    assert vars(context).keys() == {"settings"}
    assert context.contract_catalog is context.contract_catalog
