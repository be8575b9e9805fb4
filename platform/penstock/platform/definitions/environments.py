"""Environments in Dagster: one asset each, jobs to plan, approve and apply, and a scheduled check for drift.

An apply needs the id of a plan that was shown (the plan job logs it) and approved.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    AssetSelection,
    AssetSpec,
    DefaultScheduleStatus,
    Definitions,
    Field,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    SkipReason,
    TableColumn,
    TableRecord,
    TableSchema,
    asset_check,
    define_asset_job,
)
from dagster import AssetChecksDefinition as Check

from penstock.core.errors import PenstockError
from penstock.infra.environments import Environment, EnvironmentCatalog, EnvironmentOutputs
from penstock.infra.environments.errors import NotAppliedError
from penstock.infra.terraform import ResourceChange, TerraformPlan
from penstock.infra.terraform.errors import StateLockedError
from penstock.platform.definitions.config_job import build_config_job
from penstock.platform.definitions.context import DefinitionsContext

EnvironmentOpener = Callable[[str], Environment]
ASSET_GROUP = "environments"
DRIFT_CHECK = "drift"
_CHANGE_COLUMNS = ("action", "resource", "change")


@dataclass(frozen=True)
class EnvironmentContext:
    """What the definitions need from the platform; environments are opened only by runs.

    `list_applied` returns the environments that have something to check, `drift_cron` is the schedule of the check.
    """

    open_environment: EnvironmentOpener
    list_applied: Callable[[], Sequence[str]]
    now: Callable[[], datetime]
    owner: str
    drift_cron: str = "*/15 * * * *"


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the definitions of the environments of the settings' folders."""
    settings = context.settings
    catalog = EnvironmentCatalog(settings.root, settings.home, settings.terraform.engine)
    environment_context = EnvironmentContext(
        catalog.open, catalog.provisioned_names, lambda: datetime.now(UTC), settings.dagster.owner
    )
    return build_environment_definitions(catalog.names(), environment_context)


def build_environment_definitions(
    names: Sequence[str], environment_context: EnvironmentContext
) -> Definitions:
    """Build assets, checks, jobs and the schedule of these environments."""
    checks = [_build_drift_check(name, environment_context) for name in names]
    drift_job = define_asset_job(
        "environment_drift",
        selection=AssetSelection.checks(*checks),
        description="Compare each applied environment with its Terraform state.",
    )
    schedule = ScheduleDefinition(
        name="environment_drift",
        job=drift_job,
        cron_schedule=environment_context.drift_cron,
        execution_fn=lambda _context: _request_drift_checks(environment_context.list_applied()),
        default_status=DefaultScheduleStatus.RUNNING,
        description="Compares each applied environment with its Terraform state.",
    )
    return Definitions(
        assets=[spec for name in names for spec in _build_specs(name, environment_context.owner)],
        asset_checks=checks,
        jobs=[*_build_jobs(names, environment_context), drift_job],
        schedules=[schedule],
    )


def _request_drift_checks(applied_names: Sequence[str]) -> RunRequest | SkipReason:
    keys = [AssetCheckKey(environment_key(name), DRIFT_CHECK) for name in applied_names]
    return RunRequest(asset_check_keys=keys) if keys else SkipReason("No environment was applied from here")


def environment_key(name: str) -> AssetKey:
    """Return the asset key of an environment."""
    return AssetKey([ASSET_GROUP, name])


def _build_specs(name: str, owner: str) -> Iterator[AssetSpec]:
    environment_asset = environment_key(name)
    yield AssetSpec(
        environment_asset,
        group_name=ASSET_GROUP,
        owners=[owner],
        kinds={"terraform"},
        description=f"The environment {name}.",
    )
    for part, component in (("kafka", "Kafka brokers"), ("spark", "Spark cluster")):
        key = AssetKey([ASSET_GROUP, name, part])
        yield AssetSpec(
            key,
            deps=[environment_asset],
            group_name=ASSET_GROUP,
            owners=[owner],
            kinds={part},
            description=f"{component} of {name}.",
        )


def _build_drift_check(name: str, environment_context: EnvironmentContext) -> Check:
    @asset_check(
        asset=environment_key(name),
        name=DRIFT_CHECK,
        description="The environment has not changed since it was applied.",
    )
    def check_drift() -> AssetCheckResult:
        try:
            environment_drift = environment_context.open_environment(name).find_drift()
        except NotAppliedError as error:
            return AssetCheckResult(passed=True, metadata={"state": str(error)})
        except StateLockedError as error:
            return _undetermined_result(error, AssetCheckSeverity.WARN)
        except PenstockError as error:
            return _undetermined_result(error, AssetCheckSeverity.ERROR)
        return AssetCheckResult(
            passed=not environment_drift,
            severity=AssetCheckSeverity.ERROR,
            metadata={
                "changes": _format_changes(environment_drift.changes),
                "count": len(environment_drift.changes),
            },
        )

    return check_drift


def _undetermined_result(error: PenstockError, severity: AssetCheckSeverity) -> AssetCheckResult:
    """Return the result if drift could not be determined, which is not the same as no drift."""
    return AssetCheckResult(passed=False, severity=severity, metadata={"not_checked": str(error)})


def _build_jobs(names: Sequence[str], environment_context: EnvironmentContext) -> Iterator[JobDefinition]:
    name_field = Field(str, description=f"environment: {', '.join(names)}")
    plan_field = Field(str, description="id of a plan that was shown")
    destroy_field = Field(bool, default_value=False, description="plan the removal of everything")
    approver_field = Field(str, description="name of the approver; Dagster has no users to verify it against")

    def run_plan(context: OpExecutionContext) -> None:
        values = context.op_config
        terraform_plan = environment_context.open_environment(values["environment"]).plan(
            destroy=bool(values["destroy"])
        )
        context.add_output_metadata(_plan_metadata(terraform_plan))
        context.log.info("Plan %s: %s", terraform_plan.plan_id, terraform_plan)

    def run_approve(context: OpExecutionContext) -> None:
        values = context.op_config
        approver = f"{values['by']} (entered in run {context.run_id})"
        approval = environment_context.open_environment(values["environment"]).approve(
            values["plan"], approver, environment_context.now()
        )
        context.log.info("Plan %s approved by %s", approval.plan_id, approval.approver)

    def run_apply(context: OpExecutionContext) -> None:
        environment = environment_context.open_environment(context.op_config["environment"])
        log_info = context.log.info
        environment.apply(
            context.op_config["plan"], require_approval=True, on_event=lambda event: log_info("%s", event)
        )
        if environment.workspace.list_resources():
            for materialization in _build_materializations(environment.name, environment.read_outputs()):
                context.log_event(materialization)

    yield build_config_job(
        "environment_plan",
        "plan_environment",
        "Plan the changes of an environment and show them.",
        {"environment": name_field, "destroy": destroy_field},
        run_plan,
    )
    yield build_config_job(
        "environment_approve",
        "approve_environment",
        "Approve a plan.",
        {"environment": name_field, "plan": plan_field, "by": approver_field},
        run_approve,
    )
    yield build_config_job(
        "environment_apply",
        "apply_environment",
        "Apply an approved plan.",
        {"environment": name_field, "plan": plan_field},
        run_apply,
    )


def _build_materializations(name: str, outputs: EnvironmentOutputs) -> Iterator[AssetMaterialization]:
    yield AssetMaterialization(
        environment_key(name),
        metadata={"warehouse": outputs.warehouse.root, "control_store": outputs.control_store.url},
    )
    kafka, spark = outputs.kafka, outputs.spark
    yield AssetMaterialization(
        AssetKey([ASSET_GROUP, name, "kafka"]),
        metadata={"brokers": kafka.bootstrap, "protocol": kafka.security.protocol},
    )
    yield AssetMaterialization(
        AssetKey([ASSET_GROUP, name, "spark"]),
        metadata={"kind": spark.kind, "address": spark.master or spark.application},
    )


def _plan_metadata(terraform_plan: TerraformPlan) -> dict[str, MetadataValue]:
    return {
        "plan": MetadataValue.text(terraform_plan.plan_id),
        "summary": MetadataValue.text(str(terraform_plan)),
        "changes": _format_changes([change for change in terraform_plan.changes if change.has_effect]),
    }


def _format_changes(changes: Sequence[ResourceChange]) -> MetadataValue:
    """Return the changes as a table; sensitive values are already masked."""
    return MetadataValue.table(
        records=[
            TableRecord(dict(zip(_CHANGE_COLUMNS, _change_cells(change), strict=True))) for change in changes
        ],
        schema=TableSchema(columns=[TableColumn(name, "string") for name in _CHANGE_COLUMNS]),
    )


def _change_cells(change: ResourceChange) -> tuple[str, str, str]:
    values = ", ".join(
        f"{attribute_change.path}: {attribute_change.before} -> {attribute_change.after}"
        for attribute_change in change.values
        if attribute_change.path != "id"
    )
    return str(change.action), change.address, values
