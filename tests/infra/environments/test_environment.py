"""Plan, approve, apply, drift and outputs of an environment, with real Terraform and small HCL."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.infra.environments import (
    Environment,
    EnvironmentCatalog,
    EnvironmentOutputs,
    NotApprovedError,
    UnknownEnvironmentError,
    platform_settings,
)
from penstock.infra.environments.errors import NotAppliedError
from penstock.infra.terraform import PlanAction
from penstock.infra.terraform.errors import OutputError, UnknownPlanError

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)

# What a file says is what is there: another content is drift, as a process that is gone would be.
MAIN = """
variable "seen" { type = string }
locals { there = fileexists(var.seen) ? trimspace(file(var.seen)) : "nothing" }
resource "terraform_data" "it" { triggers_replace = local.there }
"""
OUTPUTS = """
output "kafka" {
  value = {
    brokers  = ["127.0.0.1:1", "127.0.0.1:2"]
    security = { protocol = "SASL_SSL", mechanism = "SCRAM-SHA-512", ca = "/ca.pem", secrets = { host = "/host" } }
  }
}
output "spark" {
  value = { kind = "standalone", master = "spark://127.0.0.1:3", application = "", job_role = "", secret = "" }
}
output "warehouse" { value = { root = "/warehouse" } }
output "control_store" { value = { url = "sqlite:///control.db", secret = "" } }
"""


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    return tmp_path / "seen"


@pytest.fixture
def catalog(tmp_path: Path) -> EnvironmentCatalog:
    for name in ("one", "two"):
        folder = tmp_path / "infra" / "environments" / name
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(MAIN)
        (folder / "outputs.tf").write_text(OUTPUTS)
    return EnvironmentCatalog(tmp_path, tmp_path / ".penstock")


@pytest.fixture
def one(catalog: EnvironmentCatalog, seen: Path) -> Environment:
    return catalog.open("one", {"seen": str(seen)})


def test_environments_are_found_by_their_folders(catalog: EnvironmentCatalog) -> None:
    assert catalog.names() == ["one", "two"]
    with pytest.raises(UnknownEnvironmentError, match="known names: one, two"):
        catalog.open("three")


def test_a_plan_waits_until_it_is_applied_or_dropped(one: Environment) -> None:
    first = one.plan()
    assert [plan.plan_id for plan in one.load_plans()] == [first.plan_id]
    one.drop_plan(first.plan_id)
    assert list(one.load_plans()) == []
    second = one.plan()
    one.apply(second.plan_id)
    assert list(one.load_plans()) == []


def test_only_a_plan_that_was_approved_is_applied_where_that_is_asked_for(one: Environment) -> None:
    plan = one.plan()
    with pytest.raises(NotApprovedError, match="1 to create"):
        one.apply(plan.plan_id, require_approval=True)
    assert one.workspace.list_resources() == ()
    approval = one.approve(plan.plan_id, "ann", NOON)
    assert one.find_approval(plan.plan_id) == approval
    assert (approval.approver, approval.approved_at) == ("ann", NOON)
    one.apply(plan.plan_id, require_approval=True)
    assert one.workspace.list_resources() == ("terraform_data.it",)


def test_an_approval_is_of_one_plan(one: Environment, seen: Path) -> None:
    old = one.plan()
    one.approve(old.plan_id, "ann", NOON)
    seen.write_text("something")
    new = one.plan()
    with pytest.raises(NotApprovedError):
        one.apply(new.plan_id, require_approval=True)


def test_what_was_never_planned_cannot_be_applied(one: Environment) -> None:
    with pytest.raises(UnknownPlanError):
        one.apply("0123456789ab")


def test_drift_is_what_differs_from_what_was_applied(one: Environment, seen: Path) -> None:
    seen.write_text("broker 1 runs")
    one.apply(one.plan().plan_id)
    assert not one.find_drift()
    seen.unlink()
    drift = one.find_drift()
    assert [(change.address, change.action) for change in drift.changes] == [
        ("terraform_data.it", PlanAction.REPLACE)
    ]
    assert list(one.load_plans()) == []


def test_an_environment_that_was_not_applied_has_neither_drift_nor_outputs(one: Environment) -> None:
    with pytest.raises(NotAppliedError, match="Apply it first"):
        one.find_drift()
    with pytest.raises(NotAppliedError, match="Apply it first"):
        one.read_outputs()


def test_outputs_are_typed_and_give_the_platforms_settings(one: Environment) -> None:
    one.apply(one.plan().plan_id)
    outputs = one.read_outputs()
    assert isinstance(outputs, EnvironmentOutputs)
    assert outputs.kafka.security.secrets == {"host": "/host"}
    assert platform_settings(outputs) == {
        "warehouse": "/warehouse",
        "control_url": "sqlite:///control.db",
        "kafka.bootstrap": "127.0.0.1:1,127.0.0.1:2",
        "kafka.layout": "local",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.security.mechanism": "SCRAM-SHA-512",
        "kafka.security.ca": "/ca.pem",
        "kafka.security.secrets.host": "/host",
        "spark.master": "spark://127.0.0.1:3",
    }


def test_outputs_of_another_form_are_refused(catalog: EnvironmentCatalog, seen: Path) -> None:
    path = catalog.directory / "one" / "outputs.tf"
    path.write_text(OUTPUTS.replace('root = "/warehouse"', "root = 7"))
    one = catalog.open("one", {"seen": str(seen)})
    one.apply(one.plan().plan_id)
    with pytest.raises(OutputError, match=r"warehouse\.root"):
        one.read_outputs()


def test_destroying_goes_by_a_plan_too(one: Environment) -> None:
    one.apply(one.plan().plan_id)
    plan = one.plan(destroy=True)
    assert plan.count_actions(PlanAction.DELETE) == 1
    one.apply(plan.plan_id)
    assert one.workspace.list_resources() == ()


def test_a_home_elsewhere_holds_the_state_of_what_runs_here(
    catalog: EnvironmentCatalog, tmp_path: Path
) -> None:
    (catalog.directory / "one").rename(catalog.directory / "local")
    main = catalog.directory / "local" / "main.tf"
    main.write_text(MAIN + 'variable "home" { type = string }\nterraform {\n  backend "local" {}\n}\n')
    there = EnvironmentCatalog(tmp_path, tmp_path / "elsewhere").open("local", {"seen": "/none"})
    there.apply(there.plan().plan_id)
    assert (tmp_path / "elsewhere" / "environments" / "local" / "terraform.tfstate").is_file()
    assert there.workspace.variables["home"] == str(tmp_path / "elsewhere")
