"""Plan, apply, change, destroy: with real Terraform and real `terraform_data`, by each engine."""

from __future__ import annotations

import json
import stat
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
    StalePlanError,
    StateUnreadableError,
    UnknownPlanError,
)
from penstock.infra.terraform.plans import UNKNOWN_MASK

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each

MakeWorkspace = Callable[..., TerraformWorkspace]

ONE = """
variable "size" { type = number }
resource "terraform_data" "one" { input = { size = var.size, name = "one" } }
output "size" { value = terraform_data.one.output.size }
"""

ECHO = """
resource "terraform_data" "told" {
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
    one = workspace(ONE, engine, variables={"size": 3})
    plan = one.plan()
    assert [(c.address, c.kind, c.action) for c in plan.changes] == [
        ("terraform_data.one", "terraform_data", PlanAction.CREATE)
    ]
    assert AttributeChange("input.size", None, 3) in plan.changes[0].values
    assert AttributeChange("id", None, UNKNOWN_MASK) in plan.changes[0].values
    assert [(o.name, o.action) for o in plan.outputs] == [("size", PlanAction.CREATE)]
    assert str(plan) == "1 to create, 0 to change in place, 0 to replace, 0 to destroy"
    assert one.list_resources() == ()
    assert one.read_outputs() == {}


def test_what_was_applied_needs_no_second_change(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    one = workspace(ONE, engine, variables={"size": 3})
    one.apply(one.plan())
    assert one.read_outputs()["size"].value == 3
    assert one.list_resources() == ("terraform_data.one",)
    assert one.plan().is_empty


def test_a_state_that_cannot_be_read_is_not_one_that_is_empty(
    workspace: MakeWorkspace, engine: TerraformEngine, folder: Path
) -> None:
    one = workspace(ONE, engine, variables={"size": 3})
    one.apply(one.plan())
    (folder / "terraform.tfstate").write_text("cut of")
    with pytest.raises(StateUnreadableError, match=r"Reading the state environment failed"):
        one.list_resources()
    with pytest.raises(StateUnreadableError, match="credentials are still good"):
        one.read_outputs()


def test_a_change_is_shown_from_what_to_what(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    one = workspace(ONE, engine, variables={"size": 3})
    one.apply(one.plan())
    larger = workspace(ONE, engine, variables={"size": 4}).plan()
    assert [change.action for change in larger.changes] == [PlanAction.UPDATE]
    assert AttributeChange("input.size", 3, 4) in larger.changes[0].values
    assert not [value for value in larger.changes[0].values if value.path == "input.name"]


def test_destroy_leaves_nothing_in_the_state(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    one = workspace(ONE, engine, variables={"size": 3})
    one.apply(one.plan())
    plan = one.plan(destroy=True)
    assert plan.destroys
    assert plan.count_actions(PlanAction.DELETE) == 1
    one.apply(plan)
    assert one.list_resources() == ()


def test_both_engines_share_folder_and_state(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    embedded = workspace(ONE, embedded_engine(), variables={"size": 3})
    embedded.apply(embedded.plan())
    other = workspace(ONE, engine, variables={"size": 3})
    assert other.plan().is_empty
    other.apply(other.plan(destroy=True))
    assert embedded.list_resources() == ()


def test_progress_comes_while_it_applies(
    workspace: MakeWorkspace, engine: TerraformEngine, tmp_path: Path
) -> None:
    """The resource waits until the reader of its first event lets it go on: no event, no end."""
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

    def see(event: TerraformEvent) -> None:
        events.append(event)
        gate.touch()

    waits = workspace(hcl, engine, timeouts=TerraformTimeouts(apply_timeout_s=60, grace_s=10))
    steps = waits.apply(waits.plan(), on_event=see)
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
    assert "terraform_data.told" in echo.list_resources()
    left = echo.plan().changes
    assert [(change.address, change.action) for change in left] == [
        ("terraform_data.broken", PlanAction.REPLACE)
    ]
    assert left[0].reason == "replace because tainted"


def test_output_of_a_provisioner_is_an_event(workspace: MakeWorkspace) -> None:
    told = workspace(ECHO.split('resource "terraform_data" "broken"')[0])
    steps = told.apply(told.plan())
    assert any(step.phase is ResourcePhase.OUTPUT and "spoken" in step.message for step in steps)


def test_wrong_hcl_is_refused_with_its_line(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    wrong = workspace('resource "terraform_data" "x" {\n  inputs = 1\n}\n', engine)
    with pytest.raises(ConfigurationError) as caught:
        wrong.validate()
    assert caught.value.diagnostics[0].source_line == "main.tf:2"
    assert "Unsupported argument" in str(caught.value)


def test_hcl_that_cannot_be_read_is_refused_when_preparing(
    workspace: MakeWorkspace, engine: TerraformEngine
) -> None:
    with pytest.raises(ConfigurationError, match=r"main\.tf"):
        workspace('resource "terraform_data" {', engine).plan()


def test_a_variable_of_the_wrong_type_stops_the_plan(
    workspace: MakeWorkspace, engine: TerraformEngine
) -> None:
    with pytest.raises(PlanFailedError, match="size"):
        workspace(ONE, engine, variables={"size": "large"}).plan()


def test_a_provider_that_is_nowhere_is_named(workspace: MakeWorkspace, tmp_path: Path) -> None:
    mirror = f'filesystem_mirror {{\n path = "{tmp_path}"\n }}'
    config = tmp_path / "cli.tfrc"
    config.write_text(f"provider_installation {{\n{mirror}\n}}\n")
    required = 'none = { source = "penstock/none", version = "1.0.0" }'
    hcl = f"terraform {{\n required_providers {{\n{required}\n}}\n}}\n"
    environment = {"PATH": "/usr/bin:/bin", "TF_CLI_CONFIG_FILE": str(config)}
    with pytest.raises(ProviderMissingError, match="penstock/none"):
        workspace(hcl, environment=environment).plan()


def test_a_plan_is_applied_once(workspace: MakeWorkspace) -> None:
    one = workspace(ONE, variables={"size": 3})
    plan = one.plan()
    one.apply(plan)
    with pytest.raises(UnknownPlanError, match="Plan again"):
        one.apply(plan)


def test_a_plan_that_was_tampered_with_is_refused(workspace: MakeWorkspace, tmp_path: Path) -> None:
    one = workspace(ONE, variables={"size": 3})
    plan = one.plan()
    saved = one.saved_plans.verified_plan_file(plan)
    saved.write_bytes(saved.read_bytes() + b"x")
    with pytest.raises(UnknownPlanError, match="not the plan that was shown"):
        one.apply(plan)
    assert one.list_resources() == ()


def test_a_plan_older_than_the_state_is_stale(workspace: MakeWorkspace, engine: TerraformEngine) -> None:
    one = workspace(ONE, engine, variables={"size": 3})
    old = one.plan()
    newer = workspace(ONE, engine, variables={"size": 4})
    newer.apply(newer.plan())
    with pytest.raises(StalePlanError, match="Plan again"):
        one.apply(old)
    assert one.read_outputs()["size"].value == 4


def test_a_plan_of_another_engine_is_refused(workspace: MakeWorkspace) -> None:
    one = workspace(ONE, variables={"size": 3})
    plan = one.plan()
    other = workspace(ONE, TerraformEngine("terraform", ("/bin/false",), "0"), variables={"size": 3})
    prepared = other.work_directory / "data" / "prepared"
    prepared.write_text(other._compute_stamp())
    with pytest.raises(StalePlanError, match="cannot apply it"):
        other.apply(plan)


def test_a_saved_plan_is_found_again_by_its_id(workspace: MakeWorkspace) -> None:
    one = workspace(ONE, variables={"size": 3})
    plan = one.plan()
    assert one.saved_plans.load(plan.plan_id) == plan
    with pytest.raises(UnknownPlanError, match="no saved plan"):
        one.saved_plans.load("0123456789ab")


def test_a_sensitive_value_is_masked_in_what_is_shown(workspace: MakeWorkspace) -> None:
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


def test_what_holds_secrets_is_its_owners_alone_and_goes(workspace: MakeWorkspace) -> None:
    one = workspace(ONE, variables={"size": 3})
    plan = one.plan()
    assert stat.S_IMODE(one.work_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(one.saved_plans.verified_plan_file(plan).parent.stat().st_mode) == 0o700
    one.apply(plan)
    assert list((one.work_directory / "plans").iterdir()) == []
    assert list((one.work_directory / "runs").iterdir()) == []


def test_preparing_again_does_nothing_until_the_code_changes(
    workspace: MakeWorkspace, tmp_path: Path
) -> None:
    one = workspace(ONE, variables={"size": 3})
    one.prepare()
    stamp = (one.work_directory / "data" / "prepared").read_text()
    one.prepare()
    assert (one.work_directory / "data" / "prepared").read_text() == stamp
    module = one.directory / "part"
    module.mkdir()
    (module / "main.tf").write_text('resource "terraform_data" "inner" {}\n')
    more = workspace(ONE + 'module "part" { source = "./part" }\n', variables={"size": 3})
    assert {change.address for change in more.plan().changes} == {
        "terraform_data.one",
        "module.part.terraform_data.inner",
    }


def test_warnings_come_back_from_validate(workspace: MakeWorkspace) -> None:
    assert workspace(ONE).validate() == ()


def test_a_value_never_reaches_a_command_line(workspace: MakeWorkspace, tmp_path: Path) -> None:
    """The engine is a program that writes down how it was called."""
    recorder = tmp_path / "recorder"
    log = tmp_path / "calls.json"
    recorder.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {log}\nexit 1\n')
    recorder.chmod(0o755)
    one = workspace(ONE, TerraformEngine("terraform", (str(recorder),), "1.6.0"), variables={"size": 987654})
    data = one.work_directory / "data"
    one.work_directory.mkdir()
    data.mkdir()
    (data / "prepared").write_text(one._compute_stamp())
    with pytest.raises(PlanFailedError):
        one.plan()
    called = log.read_text()
    assert "-var-file=" in called
    assert "987654" not in called


def test_a_reader_that_fails_stops_the_run_in_order(workspace: MakeWorkspace) -> None:
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


def test_diagnostics_and_changes_are_plain_values() -> None:
    assert Diagnostic("error", "Bad", "why", "a.b") == Diagnostic("error", "Bad", "why", "a.b")
    assert str(Diagnostic("error", "Bad", "why", source_line="main.tf:3")) == "main.tf:3: Bad: why"
    assert not ResourceChange("a.b", "a", PlanAction.READ).has_effect
