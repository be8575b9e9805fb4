"""The maintenance job and its schedule."""

from collections.abc import Callable
from dataclasses import asdict

from dagster import (
    Bool,
    DagsterInstance,
    DefaultScheduleStatus,
    Definitions,
    Field,
    MetadataValue,
    OpExecutionContext,
    ScheduleDefinition,
)

from penstock.core.clock import now_ms
from penstock.core.progress import ProgressReporter
from penstock.platform.definitions.config_job import build_config_job
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.maintenance import run_maintenance
from penstock.platform.maintenance.maintenance_run import MaintenanceAction

DESCRIPTION = "Merge small files, and remove what its retention time no longer covers."
MaintenanceRunner = Callable[[DagsterInstance, ProgressReporter, bool], list[MaintenanceAction]]


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the job and its schedule of the settings."""
    settings = context.settings
    return build_maintenance_definitions(
        lambda instance, report_progress, dry_run: run_maintenance(
            settings, context.open_store(), instance, now_ms(), report_progress, dry_run=dry_run
        ),
        settings.maintenance.schedule,
    )


def build_maintenance_definitions(maintain: MaintenanceRunner, cron: str) -> Definitions:
    """Build the job and its schedule, which is on by default."""
    schema = {"dry_run": Field(Bool, default_value=False, description="only list what would be removed")}

    def run_step(context: OpExecutionContext) -> None:
        actions = maintain(
            context.instance, lambda text: context.log.info("%s", text), context.op_config["dry_run"]
        )
        context.add_output_metadata({"done": MetadataValue.json([asdict(action) for action in actions])})

    job = build_config_job("maintenance", "maintain", DESCRIPTION, schema, run_step)
    schedule = ScheduleDefinition(
        job=job,
        cron_schedule=cron,
        run_config={},
        default_status=DefaultScheduleStatus.RUNNING,
        description=DESCRIPTION,
    )
    return Definitions(jobs=[job], schedules=[schedule])
