"""The public names of the plan and its neighbours are pinned, so that none is removed by accident."""

import json
from importlib import import_module
from pathlib import Path

import pytest

PINNED = json.loads((Path(__file__).parent / "exports.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PINNED)
def test_the_exports_of_a_package_are_pinned(package: str) -> None:
    module = import_module(f"penstock.{package}")
    assert sorted(module.__all__) == PINNED[package]
    assert all(hasattr(module, name) for name in module.__all__)
