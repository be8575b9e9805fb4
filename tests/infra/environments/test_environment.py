"""Plans, approvals, drift and outputs of an environment, with real Terraform and small HCL."""

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

# The content of a file stands for the actual infrastructure: if it changes, that is drift.
MAIN = """
variable "infrastructure" { type = string }
locals { actual = fileexists(var.infrastructure) ? trimspace(file(var.infrastructure)) : "nothing" }
resource "terraform_data" "it" { triggers_replace = local.actual }
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
def infrastructure_file(tmp_path: Path) -> Path:
    return tmp_path / "infrastructure"


@pytest.fixture
def catalog(tmp_path: Path) -> EnvironmentCatalog:
    for name in ("one", "two"):
        folder = tmp_path / "infra" / "environments" / name
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(MAIN)
        (folder / "outputs.tf").write_text(OUTPUTS)
    return EnvironmentCatalog(tmp_path, tmp_path / ".penstock")


@pytest.fixture
def environment(catalog: EnvironmentCatalog, infrastructure_file: Path) -> Environment:
    return catalog.open("one", {"infrastructure": str(infrastructure_file)})


def test_each_folder_is_an_environment(catalog: EnvironmentCatalog) -> None:
    assert catalog.names() == ["one", "two"]
    with pytest.raises(UnknownEnvironmentError, match="known names: one, two"):
        catalog.open("three")


def test_a_plan_is_stored_until_it_is_applied_or_dropped(environment: Environment) -> None:
    first = environment.plan()
    assert [plan.plan_id for plan in environment.load_plans()] == [first.plan_id]
    environment.drop_plan(first.plan_id)
    assert list(environment.load_plans()) == []
    second = environment.plan()
    environment.apply(second.plan_id)
    assert list(environment.load_plans()) == []


def test_an_unapproved_plan_is_refused_if_approval_is_required(environment: Environment) -> None:
    plan = environment.plan()
    with pytest.raises(NotApprovedError, match="1 to create"):
        environment.apply(plan.plan_id, require_approval=True)
    assert environment.workspace.list_resources() == ()
    approval = environment.approve(plan.plan_id, "ann", NOON)
    assert environment.find_approval(plan.plan_id) == approval
    assert (approval.approver, approval.approved_at) == ("ann", NOON)
    environment.apply(plan.plan_id, require_approval=True)
    assert environment.workspace.list_resources() == ("terraform_data.it",)


def test_an_approval_applies_to_one_plan_only(environment: Environment, infrastructure_file: Path) -> None:
    old = environment.plan()
    environment.approve(old.plan_id, "ann", NOON)
    infrastructure_file.write_text("something")
    new = environment.plan()
    with pytest.raises(NotApprovedError):
        environment.apply(new.plan_id, require_approval=True)


def test_an_unknown_plan_cannot_be_applied(environment: Environment) -> None:
    with pytest.raises(UnknownPlanError):
        environment.apply("0123456789ab")


def test_drift_lists_differences_from_the_applied_state(
    environment: Environment, infrastructure_file: Path
) -> None:
    infrastructure_file.write_text("broker 1 runs")
    environment.apply(environment.plan().plan_id)
    assert not environment.find_drift()
    infrastructure_file.unlink()
    drift = environment.find_drift()
    assert [(change.address, change.action) for change in drift.changes] == [
        ("terraform_data.it", PlanAction.REPLACE)
    ]
    assert list(environment.load_plans()) == []


def test_an_environment_that_was_not_applied_has_neither_drift_nor_outputs(environment: Environment) -> None:
    with pytest.raises(NotAppliedError, match="Apply it first"):
        environment.find_drift()
    with pytest.raises(NotAppliedError, match="Apply it first"):
        environment.read_outputs()


def test_outputs_are_typed_and_map_to_platform_settings(environment: Environment) -> None:
    environment.apply(environment.plan().plan_id)
    outputs = environment.read_outputs()
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


def test_malformed_outputs_are_refused(catalog: EnvironmentCatalog, infrastructure_file: Path) -> None:
    path = catalog.directory / "one" / "outputs.tf"
    path.write_text(OUTPUTS.replace('root = "/warehouse"', "root = 7"))
    environment = catalog.open("one", {"infrastructure": str(infrastructure_file)})
    environment.apply(environment.plan().plan_id)
    with pytest.raises(OutputError, match=r"warehouse\.root"):
        environment.read_outputs()


def test_an_environment_is_destroyed_by_a_plan(environment: Environment) -> None:
    environment.apply(environment.plan().plan_id)
    plan = environment.plan(destroy=True)
    assert plan.count_actions(PlanAction.DELETE) == 1
    environment.apply(plan.plan_id)
    assert environment.workspace.list_resources() == ()


def test_the_state_of_a_local_environment_is_in_its_home(catalog: EnvironmentCatalog, tmp_path: Path) -> None:
    (catalog.directory / "one").rename(catalog.directory / "local")
    main = catalog.directory / "local" / "main.tf"
    main.write_text(MAIN + 'variable "home" { type = string }\nterraform {\n  backend "local" {}\n}\n')
    elsewhere = EnvironmentCatalog(tmp_path, tmp_path / "elsewhere").open(
        "local", {"infrastructure": "/none"}
    )
    elsewhere.apply(elsewhere.plan().plan_id)
    assert (tmp_path / "elsewhere" / "environments" / "local" / "terraform.tfstate").is_file()
    assert elsewhere.workspace.variables["home"] == str(tmp_path / "elsewhere")
