"""Saved plans: applied once, verified, and private."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.infra.terraform import (
    PlanAction,
    TerraformEngine,
    TerraformWorkspace,
)
from penstock.infra.terraform.errors import (
    PlanFailedError,
    StalePlanError,
    UnknownPlanError,
)

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each


MakeWorkspace = Callable[..., TerraformWorkspace]


ONE_RESOURCE = """
variable "size" { type = number }
resource "terraform_data" "one" { input = { size = var.size, name = "one" } }
output "size" { value = terraform_data.one.output.size }
"""


def test_a_plan_is_applied_once(workspace: MakeWorkspace) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, variables={"size": 3})
    plan = workspace_of_one.plan()
    workspace_of_one.apply(plan)
    with pytest.raises(UnknownPlanError, match="Plan again"):
        workspace_of_one.apply(plan)


def test_a_modified_plan_file_is_refused(workspace: MakeWorkspace, tmp_path: Path) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, variables={"size": 3})
    plan = workspace_of_one.plan()
    saved = workspace_of_one.saved_plans.verified_plan_file(plan)
    saved.write_bytes(saved.read_bytes() + b"x")
    with pytest.raises(UnknownPlanError, match="not the plan that was shown"):
        workspace_of_one.apply(plan)
    assert workspace_of_one.list_resources() == ()


def test_a_plan_older_than_the_state_is_stale(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    old = workspace_of_one.plan()
    newer = workspace(ONE_RESOURCE, engine, variables={"size": 4})
    newer.apply(newer.plan())
    with pytest.raises(StalePlanError, match="Plan again"):
        workspace_of_one.apply(old)
    assert workspace_of_one.read_outputs()["size"].value == 4


def test_a_plan_of_another_engine_is_refused(workspace: MakeWorkspace) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, variables={"size": 3})
    plan = workspace_of_one.plan()
    other = workspace(ONE_RESOURCE, TerraformEngine("terraform", ("/bin/false",), "0"), variables={"size": 3})
    prepared = other.work_directory / "data" / "prepared"
    prepared.write_text(other._compute_stamp())
    with pytest.raises(StalePlanError, match="cannot apply it"):
        other.apply(plan)


def test_a_saved_plan_is_loaded_by_its_id(workspace: MakeWorkspace) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, variables={"size": 3})
    plan = workspace_of_one.plan()
    assert workspace_of_one.saved_plans.load(plan.plan_id) == plan
    with pytest.raises(UnknownPlanError, match="no saved plan"):
        workspace_of_one.saved_plans.load("0123456789ab")


def test_a_sensitive_value_is_masked(workspace: MakeWorkspace) -> None:
    hcl = """
variable "password" {
  type      = string
  sensitive = true
}
resource "terraform_data" "user" { input = { name = "ann", password = var.password } }
output "password" {
  value     = var.password
  sensitive = true
}
"""
    first = workspace(hcl, variables={"password": "canary-one"})
    shown = first.plan()
    first.apply(shown)
    second = workspace(hcl, variables={"password": "canary-two"}).plan()
    text = f"{shown!r} {second!r} {first.read_outputs()!r}"
    assert "canary" not in text
    assert [c.action for c in second.changes] == [PlanAction.UPDATE]
    assert any(value.path.startswith("input") for value in second.changes[0].values)


def test_plan_files_are_private_and_removed_after_apply(workspace: MakeWorkspace) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, variables={"size": 3})
    plan = workspace_of_one.plan()
    assert stat.S_IMODE(workspace_of_one.work_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(workspace_of_one.saved_plans.verified_plan_file(plan).parent.stat().st_mode) == 0o700
    workspace_of_one.apply(plan)
    assert list((workspace_of_one.work_directory / "plans").iterdir()) == []
    assert list((workspace_of_one.work_directory / "runs").iterdir()) == []


def test_variable_values_are_not_on_the_command_line(workspace: MakeWorkspace, tmp_path: Path) -> None:
    """The engine is a program that records its arguments."""
    recorder = tmp_path / "recorder"
    log = tmp_path / "calls.json"
    recorder.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {log}\nexit 1\n')
    recorder.chmod(0o755)
    workspace_of_one = workspace(
        ONE_RESOURCE, TerraformEngine("terraform", (str(recorder),), "1.6.0"), variables={"size": 987654}
    )
    data = workspace_of_one.work_directory / "data"
    workspace_of_one.work_directory.mkdir()
    data.mkdir()
    (data / "prepared").write_text(workspace_of_one._compute_stamp())
    with pytest.raises(PlanFailedError):
        workspace_of_one.plan()
    called = log.read_text()
    assert "-var-file=" in called
    assert "987654" not in called
