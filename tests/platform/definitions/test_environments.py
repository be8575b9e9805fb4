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
    with DagsterInstance.ephemeral(tempdir=str(tmp_path)) as made:
        yield made


@pytest.fixture
def run(definitions: Definitions, instance: DagsterInstance) -> Run:
    def execute(job: str, **config: object) -> ExecuteInProcessResult:
        return definitions.resolve_job_def(job).execute_in_process(
            run_config=config or None, instance=instance
        )

    return execute


def plan(run: Run, catalog: EnvironmentCatalog, *, destroy: bool = False) -> str:
    assert run("environment_plan", environment="small", destroy=destroy).success
    (shown,) = catalog.open("small").load_plans()
    return shown.plan_id


def test_an_environment_and_its_clusters_are_assets(definitions: Definitions) -> None:
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert keys == {"environments/small", "environments/small/kafka", "environments/small/spark"}


def test_apply_takes_only_a_plan_that_was_shown_and_approved(run: Run, catalog: EnvironmentCatalog) -> None:
    plan_id = plan(run, catalog)
    with pytest.raises(NotApprovedError):
        run("environment_apply", environment="small", plan=plan_id)
    assert catalog.open("small").workspace.list_resources() == ()
    approved = run("environment_approve", environment="small", plan=plan_id, by="ann")
    approval = catalog.open("small").find_approval(plan_id)
    assert approval is not None
    assert approval.approver == f"ann (entered in run {approved.run_id})"
    assert run("environment_apply", environment="small", plan=plan_id).success
    assert catalog.open("small").workspace.list_resources() == ("terraform_data.it",)


def test_an_apply_tells_of_the_environment_and_its_clusters(
    run: Run, catalog: EnvironmentCatalog, instance
) -> None:
    plan_id = plan(run, catalog)
    run("environment_approve", environment="small", plan=plan_id, by="ann")
    run("environment_apply", environment="small", plan=plan_id)
    told = instance.get_latest_materialization_event(environment_key("small"))
    assert told.asset_materialization.metadata["warehouse"].value == "/warehouse"


def drift(run: Run) -> tuple[bool, int]:
    (found,) = run("environment_drift").get_asset_check_evaluations()
    count = found.metadata.get("count")
    return found.passed, int(count.value) if count else 0


def test_drift_is_a_check_that_fails_until_it_is_mended(run: Run, catalog: EnvironmentCatalog) -> None:
    assert drift(run) == (True, 0)
    plan_id = plan(run, catalog)
    run("environment_approve", environment="small", plan=plan_id, by="ann")
    run("environment_apply", environment="small", plan=plan_id)
    assert drift(run) == (True, 0)
    (catalog.directory / "small" / "there").touch()
    assert drift(run) == (False, 1)


def test_a_state_that_cannot_be_read_fails_the_check(run: Run, catalog: EnvironmentCatalog) -> None:
    """What expired credentials and a lost bucket look like from here: nobody knows whether anything drifted."""
    plan(run, catalog)
    (catalog.directory / "small" / "terraform.tfstate").write_text("cut of")
    (found,) = run("environment_drift").get_asset_check_evaluations()
    assert (found.passed, found.severity.value) == (False, "ERROR")
    assert "Reading the state small failed" in str(found.metadata["not_checked"].value)


def test_a_secret_is_on_no_page(run: Run, catalog: EnvironmentCatalog, instance, tmp_path: Path) -> None:
    """All that Dagster keeps of a plan, an apply and a check is searched for a value that is a secret."""
    plan_id = plan(run, catalog)
    run("environment_approve", environment="small", plan=plan_id, by="ann")
    run("environment_apply", environment="small", plan=plan_id)
    (catalog.directory / "small" / "there").touch()
    drift(run)
    records = [event for one in instance.get_runs() for event in instance.all_logs(one.run_id)]
    assert {one.job_name for one in instance.get_runs()} >= {
        "environment_plan",
        "environment_apply",
        "environment_drift",
    }
    assert records
    assert not [event for event in records if SECRET in repr(event)]


def test_drift_is_looked_for_on_a_schedule_where_anything_was_applied(
    definitions: Definitions, run: Run, catalog: EnvironmentCatalog, instance: DagsterInstance
) -> None:
    schedule = definitions.resolve_schedule_def("environment_drift")
    assert (schedule.cron_schedule, schedule.default_status.value) == ("*/15 * * * *", "RUNNING")

    def due() -> list[RunRequest]:
        with build_schedule_context(instance, scheduled_execution_time=NOON) as context:
            return list(schedule.evaluate_tick(context).run_requests or ())

    assert due() == []
    run("environment_approve", environment="small", plan=plan(run, catalog), by="ann")
    (waiting,) = catalog.open("small").load_plans()
    run("environment_apply", environment="small", plan=waiting.plan_id)
    (asked,) = due()
    assert asked.asset_check_keys == [AssetCheckKey(environment_key("small"), "drift")]
