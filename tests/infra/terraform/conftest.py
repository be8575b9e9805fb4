"""Folders with real HCL, driven by each engine that this machine has."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.infra.terraform import (
    TerraformEngine,
    TerraformTimeouts,
    TerraformWorkspace,
    embedded_engine,
    find_mirrors,
    system_engine,
)
from penstock.infra.terraform.engines import SYSTEM_PROGRAMS

MakeWorkspace = Callable[..., TerraformWorkspace]


INSTALLED = [program for program in SYSTEM_PROGRAMS if shutil.which(program)]


@pytest.fixture(params=["embedded", *INSTALLED])
def engine(request: pytest.FixtureRequest) -> TerraformEngine:
    """Each engine of this machine in turn; test_engines_and_mirrors.py names those that it lacks."""
    return embedded_engine() if request.param == "embedded" else system_engine(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = tmp_path / "environment"
    directory.mkdir()
    return directory


@pytest.fixture
def workspace(folder: Path, tmp_path: Path) -> MakeWorkspace:
    """Write HCL into a folder and drive it: `workspace(hcl, engine=…, **fields of Workspace)`."""

    def make(hcl: str, engine: TerraformEngine | None = None, **fields: object) -> TerraformWorkspace:
        (folder / "main.tf").write_text(hcl)
        fields = {"timeouts": TerraformTimeouts(grace_s=10), "mirrors": find_mirrors(), **fields}
        return TerraformWorkspace(folder, tmp_path / "work", engine or embedded_engine(), **fields)  # type: ignore[arg-type]

    return make
