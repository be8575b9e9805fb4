"""The words of a plan and of its neighbours are pinned: what others build on does not go by accident."""

import json
from importlib import import_module
from pathlib import Path

import pytest

PINNED = json.loads((Path(__file__).parent / "exports.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PINNED)
def test_what_a_package_offers_is_pinned(package: str) -> None:
    module = import_module(f"penstock.{package}")
    assert sorted(module.__all__) == PINNED[package]
    assert all(hasattr(module, name) for name in module.__all__)
