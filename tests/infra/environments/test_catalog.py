"""The catalog of environments, read from their files without Terraform."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.infra.environments import EnvironmentCatalog
from penstock.infra.environments.errors import BackendMissingError


@pytest.fixture
def catalog(tmp_path: Path) -> EnvironmentCatalog:
    for name, backend in (("local_state", ""), ("s3_state", 'terraform {\n  backend "s3" {}\n}\n')):
        folder = tmp_path / "infra" / "environments" / name
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(backend)
        (folder / "outputs.tf").write_text("")
    return EnvironmentCatalog(tmp_path, tmp_path / ".penstock")


def test_an_environment_is_provisioned_once_its_state_has_resources(catalog: EnvironmentCatalog) -> None:
    state = catalog.home / "environments" / "local_state" / "terraform.tfstate"
    state.parent.mkdir(parents=True)
    assert catalog.provisioned_names() == []
    state.write_text(json.dumps({"resources": []}))
    assert catalog.provisioned_names() == []
    state.write_text(json.dumps({"resources": [{"type": "terraform_data"}]}))
    assert catalog.provisioned_names() == ["local_state"]
    state.write_text("cut of")
    assert catalog.provisioned_names() == ["local_state"]


def test_a_remote_backend_needs_its_configuration_file(catalog: EnvironmentCatalog) -> None:
    with pytest.raises(
        BackendMissingError, match=r"no .*s3_state/backend\.hcl that says in which. Write bucket, key"
    ):
        catalog.open("s3_state")
    (catalog.directory / "s3_state" / "backend.hcl").write_text('bucket = "ours"\n')
    assert catalog.open("s3_state").workspace.backend_file == catalog.directory / "s3_state" / "backend.hcl"
    assert catalog.provisioned_names() == ["s3_state"]
