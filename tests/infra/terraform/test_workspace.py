"""Workspaces with each engine and real `terraform_data` resources."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.infra.terraform import (
    AttributeChange,
    Diagnostic,
    PlanAction,
    ResourceChange,
    ResourcePhase,
    ResourceProgress,
    TerraformEngine,
    TerraformEvent,
    TerraformTimeouts,
    TerraformWorkspace,
    embedded_engine,
)
from penstock.infra.terraform.errors import (
    ApplyFailedError,
    ConfigurationError,
    PlanFailedError,
    ProviderMissingError,
    StateUnreadableError,
)
from penstock.infra.terraform.plans import UNKNOWN_MASK

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each

MakeWorkspace = Callable[..., TerraformWorkspace]

ONE_RESOURCE = """
variable "size" { type = number }
resource "terraform_data" "one" { input = { size = var.size, name = "one" } }
output "size" { value = terraform_data.one.output.size }
"""

ECHO = """
resource "terraform_data" "echo" {
  provisioner "local-exec" {
    interpreter = ["/bin/echo"]
    command     = "spoken"
  }
}
resource "terraform_data" "broken" {
  provisioner "local-exec" {
    interpreter = ["/bin/ls"]
    command     = "/nowhere/at/all"
  }
}
"""


def test_a_plan_is_data_and_changes_nothing(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    plan = workspace_of_one.plan()
    assert [(c.address, c.kind, c.action) for c in plan.changes] == [
        ("terraform_data.one", "terraform_data", PlanAction.CREATE)
    ]
    assert AttributeChange("input.size", None, 3) in plan.changes[0].values
    assert AttributeChange("id", None, UNKNOWN_MASK) in plan.changes[0].values
    assert [(o.name, o.action) for o in plan.outputs] == [("size", PlanAction.CREATE)]
    assert str(plan) == "1 to create, 0 to change in place, 0 to replace, 0 to destroy"
    assert workspace_of_one.list_resources() == ()
    assert workspace_of_one.read_outputs() == {}


def test_a_plan_after_apply_is_empty(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    workspace_of_one.apply(workspace_of_one.plan())
    assert workspace_of_one.read_outputs()["size"].value == 3
    assert workspace_of_one.list_resources() == ("terraform_data.one",)
    assert workspace_of_one.plan().is_empty


def test_an_unreadable_state_is_not_an_empty_one(
    workspace: MakeWorkspace, engine: TerraformEngine, folder: Path
) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    workspace_of_one.apply(workspace_of_one.plan())
    (folder / "terraform.tfstate").write_text("cut of")
    with pytest.raises(StateUnreadableError, match=r"Reading the state environment failed"):
        workspace_of_one.list_resources()
    with pytest.raises(StateUnreadableError, match="credentials are still good"):
        workspace_of_one.read_outputs()


def test_a_change_shows_the_old_and_the_new_value(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    workspace_of_one.apply(workspace_of_one.plan())
    larger = workspace(ONE_RESOURCE, engine, variables={"size": 4}).plan()
    assert [change.action for change in larger.changes] == [PlanAction.UPDATE]
    assert AttributeChange("input.size", 3, 4) in larger.changes[0].values
    assert not [value for value in larger.changes[0].values if value.path == "input.name"]


def test_destroy_empties_the_state(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    workspace_of_one.apply(workspace_of_one.plan())
    plan = workspace_of_one.plan(destroy=True)
    assert plan.destroys
    assert plan.count_actions(PlanAction.DELETE) == 1
    workspace_of_one.apply(plan)
    assert workspace_of_one.list_resources() == ()


def test_both_engines_share_folder_and_state(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    embedded = workspace(ONE_RESOURCE, embedded_engine(), variables={"size": 3})
    embedded.apply(embedded.plan())
    other = workspace(ONE_RESOURCE, engine, variables={"size": 3})
    assert other.plan().is_empty
    other.apply(other.plan(destroy=True))
    assert embedded.list_resources() == ()


def test_progress_is_reported_during_the_apply(
    workspace: MakeWorkspace, engine: TerraformEngine, tmp_path: Path
) -> None:
    """The resource waits for a file that the first event creates: without events the apply times out."""
    gate = tmp_path / "gate"
    hcl = f"""
resource "terraform_data" "waits" {{
  provisioner "local-exec" {{
    interpreter = ["/bin/sh", "-c"]
    command     = "until [ -e {gate} ]; do sleep 0.05; done"
  }}
}}
"""
    events: list[TerraformEvent] = []

    def open_gate(event: TerraformEvent) -> None:
        events.append(event)
        gate.touch()

    waits = workspace(hcl, engine, timeouts=TerraformTimeouts(apply_timeout_s=60, grace_s=10))
    steps = waits.apply(waits.plan(), on_event=open_gate)
    phases = [event.phase for event in events if isinstance(event, ResourceProgress)]
    assert phases[0] is ResourcePhase.STARTED
    assert phases[-1] is ResourcePhase.DONE
    assert list(steps) == events


def test_a_failed_apply_names_the_resource_and_the_reason(
    workspace: MakeWorkspace, engine: TerraformEngine
) -> None:
    echo = workspace(ECHO, engine)
    with pytest.raises(ApplyFailedError) as caught:
        echo.apply(echo.plan())
    assert caught.value.resources == ("terraform_data.broken",)
    assert "local-exec provisioner error" in str(caught.value)
    assert "/nowhere/at/all" in str(caught.value)
    assert "terraform_data.echo" in echo.list_resources()
    changes = echo.plan().changes
    assert [(change.address, change.action) for change in changes] == [
        ("terraform_data.broken", PlanAction.REPLACE)
    ]
    assert changes[0].reason == "replace because tainted"


def test_output_of_a_provisioner_is_an_event(workspace: MakeWorkspace) -> None:
    echo = workspace(ECHO.split('resource "terraform_data" "broken"')[0])
    steps = echo.apply(echo.plan())
    assert any(step.phase is ResourcePhase.OUTPUT and "spoken" in step.message for step in steps)


def test_invalid_hcl_is_refused_with_its_line(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    wrong = workspace('resource "terraform_data" "x" {\n  inputs = 1\n}\n', engine)
    with pytest.raises(ConfigurationError) as caught:
        wrong.validate()
    assert caught.value.diagnostics[0].source_line == "main.tf:2"
    assert "Unsupported argument" in str(caught.value)


def test_unparsable_hcl_is_refused_when_preparing(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    with pytest.raises(ConfigurationError, match=r"main\.tf"):
        workspace('resource "terraform_data" {', engine).plan()


def test_a_variable_of_the_wrong_type_fails_the_plan(
    workspace: MakeWorkspace, engine: TerraformEngine
) -> None:
    with pytest.raises(PlanFailedError, match="size"):
        workspace(ONE_RESOURCE, engine, variables={"size": "large"}).plan()


def test_a_missing_provider_is_named(workspace: MakeWorkspace, tmp_path: Path) -> None:
    mirror = f'filesystem_mirror {{\n path = "{tmp_path}"\n }}'
    config = tmp_path / "cli.tfrc"
    config.write_text(f"provider_installation {{\n{mirror}\n}}\n")
    required = 'none = { source = "penstock/none", version = "1.0.0" }'
    hcl = f"terraform {{\n required_providers {{\n{required}\n}}\n}}\n"
    environment = {"PATH": "/usr/bin:/bin", "TF_CLI_CONFIG_FILE": str(config)}
    with pytest.raises(ProviderMissingError, match="penstock/none"):
        workspace(hcl, environment=environment).plan()


def test_a_second_preparation_is_skipped_until_the_code_changes(
    workspace: MakeWorkspace, tmp_path: Path
) -> None:
    workspace_of_one = workspace(ONE_RESOURCE, variables={"size": 3})
    workspace_of_one.prepare()
    stamp = (workspace_of_one.work_directory / "data" / "prepared").read_text()
    workspace_of_one.prepare()
    assert (workspace_of_one.work_directory / "data" / "prepared").read_text() == stamp
    module = workspace_of_one.directory / "part"
    module.mkdir()
    (module / "main.tf").write_text('resource "terraform_data" "inner" {}\n')
    more = workspace(ONE_RESOURCE + 'module "part" { source = "./part" }\n', variables={"size": 3})
    assert {change.address for change in more.plan().changes} == {
        "terraform_data.one",
        "module.part.terraform_data.inner",
    }


def test_validate_returns_warnings(workspace: MakeWorkspace) -> None:
    assert workspace(ONE_RESOURCE).validate() == ()


def test_a_failing_event_handler_interrupts_the_run(workspace: MakeWorkspace) -> None:
    hcl = """
resource "terraform_data" "long" {
  provisioner "local-exec" {
    interpreter = ["/bin/sleep"]
    command     = "600"
  }
}
"""

    def fail(event: TerraformEvent) -> None:
        raise KeyboardInterrupt

    long = workspace(hcl)
    plan = long.plan()
    with pytest.raises(KeyboardInterrupt):
        long.apply(plan, on_event=fail)
    state = json.loads((long.directory / "terraform.tfstate").read_text())
    assert state["resources"][0]["instances"][0]["status"] == "tainted"
    assert not list(long.directory.glob(".*.lock.info"))


def test_diagnostics_and_changes_compare_by_value() -> None:
    assert Diagnostic("error", "Bad", "why", "a.b") == Diagnostic("error", "Bad", "why", "a.b")
    assert str(Diagnostic("error", "Bad", "why", source_line="main.tf:3")) == "main.tf:3: Bad: why"
    assert not ResourceChange("a.b", "a", PlanAction.READ).has_effect
