"""Terraform workspaces, run with each engine of this machine."""

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

MakeWorkspace = Callable[..., TerraformWorkspace]
SYSTEM_PROGRAMS = ("terraform", "tofu")
INSTALLED = [program for program in SYSTEM_PROGRAMS if shutil.which(program)]


@pytest.fixture(params=["embedded", *INSTALLED])
def engine(request: pytest.FixtureRequest) -> TerraformEngine:
    """Each engine of this machine; test_engines.py skips by name the ones that are missing."""
    return embedded_engine() if request.param == "embedded" else system_engine(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = tmp_path / "environment"
    directory.mkdir()
    return directory


@pytest.fixture
def workspace(folder: Path, tmp_path: Path) -> MakeWorkspace:
    """Open a workspace of HCL: `workspace(hcl, engine=…, **fields of TerraformWorkspace)`."""

    def make(hcl: str, engine: TerraformEngine | None = None, **fields: object) -> TerraformWorkspace:
        (folder / "main.tf").write_text(hcl)
        fields = {"timeouts": TerraformTimeouts(grace_s=10), "mirrors": find_mirrors(), **fields}
        return TerraformWorkspace(folder, tmp_path / "work", engine or embedded_engine(), **fields)  # type: ignore[arg-type]

    return make
