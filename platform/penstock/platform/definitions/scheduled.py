"""Checks with the job that makes all of them and the schedule that runs it: as every kind of check comes."""

from collections.abc import Sequence

from dagster import (
    AssetChecksDefinition,
    AssetSelection,
    DefaultScheduleStatus,
    Definitions,
    ScheduleDefinition,
    define_asset_job,
    in_process_executor,
)


def scheduled_checks(
    checks: Sequence[AssetChecksDefinition], *, job: str, says: str, schedule: str, cron: str
) -> Definitions:
    """Make the job and its schedule, which is on. Checks are made one after the other: some start Spark."""
    keys = [key for each in checks for key in each.check_keys]
    every = define_asset_job(
        job, selection=AssetSelection.checks(*keys), executor_def=in_process_executor, description=says
    )
    when = ScheduleDefinition(
        job=every,
        cron_schedule=cron,
        default_status=DefaultScheduleStatus.RUNNING,
        name=schedule,
        description=says,
    )
    return Definitions(asset_checks=checks, jobs=[every], schedules=[when])
