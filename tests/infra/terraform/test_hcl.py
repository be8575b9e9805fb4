"""Format, descriptions, versions, outputs and policies of the shipped HCL."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from penstock.infra.terraform import embedded_engine, find_mirrors
from penstock.infra.terraform.errors import CommandFailedError
from penstock.infra.terraform.provider_mirrors import has_provider
from penstock.infra.terraform.runner import TerraformRunner
from penstock.infra.terraform.step_failures import VALIDATE_STEP

INFRA = Path(__file__).parents[3] / "infra"
PROVIDER = ("hashicorp/aws", "5.100.0")
FOLDERS = sorted(
    {path.parent for part in ("modules", "environments") for path in (INFRA / part).rglob("*.tf")}
)
ENVIRONMENTS = sorted(path.parent for path in (INFRA / "environments").glob("*/outputs.tf"))
TESTED_MODULES = sorted(path.parent.parent for path in (INFRA / "modules").rglob("*.tftest.hcl"))
BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
COMMON_OUTPUTS = {"kafka", "spark", "warehouse", "control_store"}


def folder_name(folder: Path) -> str:
    return str(folder.relative_to(INFRA))


def make_runner(directory: Path, work: Path) -> TerraformRunner:
    return TerraformRunner(directory, work, embedded_engine(), dict(os.environ), find_mirrors(), 10)


def find_blocks(folder: Path) -> list[tuple[str, str, str]]:
    return [blocks for path in sorted(folder.glob("*.tf")) for blocks in BLOCK.findall(path.read_text())]


def require_provider() -> None:
    if not any(has_provider(mirror, *PROVIDER) for mirror in find_mirrors()):
        pytest.skip("the provider {} {} is in no filesystem mirror of this machine".format(*PROVIDER))


def test_everything_is_formatted(tmp_path: Path) -> None:
    result = make_runner(INFRA, tmp_path).run_for_result(
        VALIDATE_STEP, 60, "fmt", "-check", "-recursive", "-diff"
    )
    assert result.stdout == ""
    assert result.exit_code == 0


@pytest.mark.parametrize("folder", FOLDERS, ids=folder_name)
def test_every_variable_and_output_has_a_description_and_type(folder: Path) -> None:
    blocks = find_blocks(folder)
    for kind, name, body in blocks:
        assert re.search(r'^  description = ".{10,}"$', body, re.MULTILINE), f"{kind} {name}"
        assert kind == "output" or re.search(r"^  type +=", body, re.MULTILINE), f"{kind} {name} has no type"


@pytest.mark.parametrize("folder", FOLDERS, ids=folder_name)
def test_versions_are_pinned(folder: Path) -> None:
    text = (folder / "versions.tf").read_text()
    assert 'required_version = ">= 1.6"' in text
    assert set(re.findall(r'version = "([^"]+)"', text)) <= {">= 1.6", PROVIDER[1]}
    assert ("aws" in folder.parts) == ('source  = "hashicorp/aws"' in text)


@pytest.mark.parametrize("folder", ENVIRONMENTS, ids=folder_name)
def test_every_environment_has_the_same_outputs(folder: Path) -> None:
    assert {name for kind, name, _ in find_blocks(folder) if kind == "output"} >= COMMON_OUTPUTS


@pytest.mark.parametrize("folder", ENVIRONMENTS, ids=folder_name)
def test_no_environment_outputs_a_secret(folder: Path) -> None:
    assert "sensitive" not in (folder / "outputs.tf").read_text()
    assert not re.search(r"password\s*=", (folder / "outputs.tf").read_text())


@pytest.mark.whole
@pytest.mark.parametrize("folder", TESTED_MODULES, ids=folder_name)
def test_the_policies_of_a_module_hold(folder: Path, tmp_path: Path) -> None:
    """Run the tests of each module with a mock provider."""
    require_provider()
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    runner = make_runner(copy, tmp_path / "work")
    runner.run_for_text(VALIDATE_STEP, 120, "init", "-input=false", "-no-color", "-backend=false")
    try:
        output = runner.run_for_text(VALIDATE_STEP, 200, "test", "-no-color")
    except CommandFailedError as error:
        pytest.fail(str(error))
    assert re.search(r"Success! [1-9]\d* passed, 0 failed", output)
