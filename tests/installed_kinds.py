"""Installs kinds from outside of the source tree: modules in a folder, and their entry points."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from penstock.core.kind_registry import KindRegistry


@contextmanager
def installed_kinds(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    registry: KindRegistry[Any],
    modules: Mapping[str, str],
    **references: str,
) -> Iterator[None]:
    """Write modules, import those that register a reference, and let a registry find these entry points."""
    write_modules(folder, monkeypatch, **modules)
    install_entry_points(folder, registry.entry_point_group, **references)
    for name in modules:
        if name.endswith("_reference"):
            import_module(name)
    forget_kinds(registry)
    try:
        yield
    finally:
        forget_kinds(registry)


def write_modules(folder: Path, monkeypatch: pytest.MonkeyPatch, **sources: str) -> None:
    """Write modules to a folder and put it on the import path, as long as the test runs."""
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(folder)


def install_entry_points(folder: Path, group: str, **references: str) -> None:
    """Make a folder on the import path an installed distribution with these entry points."""
    metadata = folder / "outside_kinds-1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-kinds\nVersion: 1.0\n")
    lines = "".join(f"{name} = {reference}\n" for name, reference in references.items())
    with (metadata / "entry_points.txt").open("a", encoding="utf-8") as file:
        file.write(f"[{group}]\n{lines}")


def forget_kinds(registry: KindRegistry[Any]) -> None:
    """Make a registry scan the packages and entry points again."""
    registry.__dict__.pop("kinds_by_name", None)
