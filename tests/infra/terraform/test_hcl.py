"""The HCL as such: formatted, described, pinned, the same outputs everywhere, and its policies."""

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
TESTED = sorted(path.parent.parent for path in (INFRA / "modules").rglob("*.tftest.hcl"))
BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
COMMON_OUTPUTS = {"kafka", "spark", "warehouse", "control_store"}


def name(folder: Path) -> str:
    return str(folder.relative_to(INFRA))


def runner(directory: Path, work: Path) -> TerraformRunner:
    return TerraformRunner(directory, work, embedded_engine(), dict(os.environ), find_mirrors(), 10)


def blocks(folder: Path) -> list[tuple[str, str, str]]:
    return [found for path in sorted(folder.glob("*.tf")) for found in BLOCK.findall(path.read_text())]


def needs_provider() -> None:
    if not any(has_provider(mirror, *PROVIDER) for mirror in find_mirrors()):
        pytest.skip("the provider {} {} is in no filesystem mirror of this machine".format(*PROVIDER))


def test_everything_is_formatted(tmp_path: Path) -> None:
    ended = runner(INFRA, tmp_path).run_for_result(VALIDATE_STEP, 60, "fmt", "-check", "-recursive", "-diff")
    assert ended.stdout == ""
    assert ended.exit_code == 0


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_every_variable_and_output_says_what_it_is(folder: Path) -> None:
    found = blocks(folder)
    for kind, what, body in found:
        assert re.search(r'^  description = ".{10,}"$', body, re.MULTILINE), f"{kind} {what}"
        assert kind == "output" or re.search(r"^  type +=", body, re.MULTILINE), f"{kind} {what} has no type"


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_versions_are_pinned(folder: Path) -> None:
    text = (folder / "versions.tf").read_text()
    assert 'required_version = ">= 1.6"' in text
    assert set(re.findall(r'version = "([^"]+)"', text)) <= {">= 1.6", PROVIDER[1]}
    assert ("aws" in folder.parts) == ('source  = "hashicorp/aws"' in text)


@pytest.mark.parametrize("folder", ENVIRONMENTS, ids=name)
def test_every_environment_has_the_same_outputs(folder: Path) -> None:
    assert {what for kind, what, _ in blocks(folder) if kind == "output"} >= COMMON_OUTPUTS


@pytest.mark.parametrize("folder", ENVIRONMENTS, ids=name)
def test_no_environment_has_a_secret_in_its_outputs(folder: Path) -> None:
    assert "sensitive" not in (folder / "outputs.tf").read_text()
    assert not re.search(r"password\s*=", (folder / "outputs.tf").read_text())


@pytest.mark.whole
@pytest.mark.parametrize("folder", TESTED, ids=name)
def test_the_policies_of_a_module_hold(folder: Path, tmp_path: Path) -> None:
    """Each module's own tests, run by Terraform with a provider that only pretends."""
    needs_provider()
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    run = runner(copy, tmp_path / "work")
    run.run_for_text(VALIDATE_STEP, 120, "init", "-input=false", "-no-color", "-backend=false")
    try:
        told = run.run_for_text(VALIDATE_STEP, 200, "test", "-no-color")
    except CommandFailedError as error:
        pytest.fail(str(error))
    assert re.search(r"Success! [1-9]\d* passed, 0 failed", told)
