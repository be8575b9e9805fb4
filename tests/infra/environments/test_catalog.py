"""Which environments there are, by their files alone: Terraform is not run here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.infra.environments import EnvironmentCatalog
from penstock.infra.environments.errors import BackendMissingError


@pytest.fixture
def catalog(tmp_path: Path) -> EnvironmentCatalog:
    for name, backend in (("here", ""), ("far", 'terraform {\n  backend "s3" {}\n}\n')):
        folder = tmp_path / "infra" / "environments" / name
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(backend)
        (folder / "outputs.tf").write_text("")
    return EnvironmentCatalog(tmp_path, tmp_path / ".penstock")


def test_an_environment_is_begun_once_its_state_holds_something(catalog: EnvironmentCatalog) -> None:
    state = catalog.home / "environments" / "here" / "terraform.tfstate"
    state.parent.mkdir(parents=True)
    assert catalog.provisioned_names() == []
    state.write_text(json.dumps({"resources": []}))
    assert catalog.provisioned_names() == []
    state.write_text(json.dumps({"resources": [{"type": "terraform_data"}]}))
    assert catalog.provisioned_names() == ["here"]
    state.write_text("cut of")
    assert catalog.provisioned_names() == ["here"]


def test_where_state_is_kept_elsewhere_somebody_has_to_say_where(catalog: EnvironmentCatalog) -> None:
    with pytest.raises(
        BackendMissingError, match=r"no .*far/backend\.hcl that says in which. Write bucket, key"
    ):
        catalog.open("far")
    (catalog.directory / "far" / "backend.hcl").write_text('bucket = "ours"\n')
    assert catalog.open("far").workspace.backend_file == catalog.directory / "far" / "backend.hcl"
    assert catalog.provisioned_names() == ["far"]
