"""Environments in Dagster: plan, approve and apply as jobs, drift as a check."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import (
    AssetCheckKey,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    RunRequest,
    build_schedule_context,
)
from tests.platform.small_environment import OUTPUTS

from penstock.infra.environments import EnvironmentCatalog
from penstock.infra.environments.errors import NotApprovedError
from penstock.platform.definitions.environments import (
    EnvironmentContext,
    build_environment_definitions,
    environment_key,
)

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
SECRET = "canary-7f3b"
MAIN = f"""
variable "password" {{
  type      = string
  sensitive = true
  default   = "{SECRET}"
}}
locals {{ there = fileexists("${{path.root}}/there") }}
resource "terraform_data" "it" {{
  input            = {{ password = var.password }}
  triggers_replace = local.there
}}
"""

Run = Callable[..., ExecuteInProcessResult]


@pytest.fixture
def catalog(tmp_path: Path) -> EnvironmentCatalog:
    folder = tmp_path / "infra" / "environments" / "small"
    folder.mkdir(parents=True)
    (folder / "main.tf").write_text(MAIN)
    (folder / "outputs.tf").write_text(OUTPUTS)
    return EnvironmentCatalog(tmp_path, tmp_path / ".penstock")


@pytest.fixture
def definitions(catalog: EnvironmentCatalog) -> Definitions:
    return build_environment_definitions(
        ["small"], EnvironmentContext(catalog.open, catalog.provisioned_names, lambda: NOON, "team:data")
    )


@pytest.fixture
def instance(tmp_path: Path):
    with DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        yield instance


@pytest.fixture
def run(definitions: Definitions, instance: DagsterInstance) -> Run:
    def execute(job: str, **config: object) -> ExecuteInProcessResult:
        return definitions.resolve_job_def(job).execute_in_process(
            run_config=config or None, instance=instance
        )

    return execute


def run_plan(run: Run, catalog: EnvironmentCatalog, *, destroy: bool = False) -> str:
    assert run("environment_plan", environment="small", destroy=destroy).success
    (stored,) = catalog.open("small").load_plans()
    return stored.plan_id


def test_an_environment_and_its_clusters_are_assets_of_dagster(definitions: Definitions) -> None:
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert keys == {"environments/small", "environments/small/kafka", "environments/small/spark"}


def test_apply_needs_an_approved_plan(run: Run, catalog: EnvironmentCatalog) -> None:
    plan_id = run_plan(run, catalog)
    with pytest.raises(NotApprovedError):
        run("environment_apply", environment="small", plan=plan_id)
    assert catalog.open("small").workspace.list_resources() == ()
    approved = run("environment_approve", environment="small", plan=plan_id, by="ann")
    approval = catalog.open("small").find_approval(plan_id)
    assert approval is not None
    assert approval.approver == f"ann (entered in run {approved.run_id})"
    assert run("environment_apply", environment="small", plan=plan_id).success
    assert catalog.open("small").workspace.list_resources() == ("terraform_data.it",)


def test_an_apply_materializes_the_environment(run: Run, catalog: EnvironmentCatalog, instance) -> None:
    plan_id = run_plan(run, catalog)
    run("environment_approve", environment="small", plan=plan_id, by="ann")
    run("environment_apply", environment="small", plan=plan_id)
    event = instance.get_latest_materialization_event(environment_key("small"))
    assert event.asset_materialization.metadata["warehouse"].value == "/warehouse"


def check_drift(run: Run) -> tuple[bool, int]:
    (found,) = run("environment_drift").get_asset_check_evaluations()
    count = found.metadata.get("count")
    return found.passed, int(count.value) if count else 0


def test_the_drift_check_fails_while_there_is_drift(run: Run, catalog: EnvironmentCatalog) -> None:
    assert check_drift(run) == (True, 0)
    plan_id = run_plan(run, catalog)
    run("environment_approve", environment="small", plan=plan_id, by="ann")
    run("environment_apply", environment="small", plan=plan_id)
    assert check_drift(run) == (True, 0)
    (catalog.directory / "small" / "there").touch()
    assert check_drift(run) == (False, 1)


def test_an_unreadable_state_fails_the_check(run: Run, catalog: EnvironmentCatalog) -> None:
    """Expired credentials and a lost bucket look the same: drift is unknown."""
    run_plan(run, catalog)
    (catalog.directory / "small" / "terraform.tfstate").write_text("cut of")
    (found,) = run("environment_drift").get_asset_check_evaluations()
    assert (found.passed, found.severity.value) == (False, "ERROR")
    assert "Reading the state small failed" in str(found.metadata["not_checked"].value)


def test_no_secret_is_stored_in_dagster(
    run: Run, catalog: EnvironmentCatalog, instance, tmp_path: Path
) -> None:
    """Search everything that Dagster stores of a plan, an apply and a check for a secret."""
    plan_id = run_plan(run, catalog)
    run("environment_approve", environment="small", plan=plan_id, by="ann")
    run("environment_apply", environment="small", plan=plan_id)
    (catalog.directory / "small" / "there").touch()
    check_drift(run)
    records = [
        event for dagster_run in instance.get_runs() for event in instance.all_logs(dagster_run.run_id)
    ]
    assert {dagster_run.job_name for dagster_run in instance.get_runs()} >= {
        "environment_plan",
        "environment_apply",
        "environment_drift",
    }
    assert records
    assert not [event for event in records if SECRET in repr(event)]


def test_drift_is_checked_on_a_schedule_for_applied_environments(
    definitions: Definitions, run: Run, catalog: EnvironmentCatalog, instance: DagsterInstance
) -> None:
    schedule = definitions.resolve_schedule_def("environment_drift")
    assert (schedule.cron_schedule, schedule.default_status.value) == ("*/15 * * * *", "RUNNING")

    def list_requests() -> list[RunRequest]:
        with build_schedule_context(instance, scheduled_execution_time=NOON) as context:
            return list(schedule.evaluate_tick(context).run_requests or ())

    assert list_requests() == []
    run("environment_approve", environment="small", plan=run_plan(run, catalog), by="ann")
    (stored,) = catalog.open("small").load_plans()
    run("environment_apply", environment="small", plan=stored.plan_id)
    (request,) = list_requests()
    assert request.asset_check_keys == [AssetCheckKey(environment_key("small"), "drift")]
