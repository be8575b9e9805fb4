"""The job that keeps the platform fit, and the schedule that runs it."""

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

from penstock.platform.definitions.single import single_job
from penstock.platform.maintenance.run import Done

SAYS = "Merge small files, and forget what nobody asks for any more."
Tell = Callable[[str], None]
Maintain = Callable[[DagsterInstance, Tell, bool], list[Done]]


def maintenance(run: Maintain, cron: str) -> Definitions:
    """Make job and schedule; the schedule runs from the first start on."""
    schema = {"dry_run": Field(Bool, default_value=False, description="only say what would be removed")}

    def do(context: OpExecutionContext) -> None:
        done = run(context.instance, lambda text: context.log.info("%s", text), context.op_config["dry_run"])
        context.add_output_metadata({"done": MetadataValue.json([asdict(each) for each in done])})

    job = single_job("maintenance", "maintain", SAYS, schema, do)
    schedule = ScheduleDefinition(
        job=job,
        cron_schedule=cron,
        run_config={},
        default_status=DefaultScheduleStatus.RUNNING,
        description=SAYS,
    )
    return Definitions(jobs=[job], schedules=[schedule])
