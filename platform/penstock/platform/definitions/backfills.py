"""A job for each pipeline that runs it over a day of its topics' archives: one partition a day.

A schedule does so each night, for the day before, of the pipelines that are asked for.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING

from dagster import (
    AssetMaterialization,
    DailyPartitionsDefinition,
    DefaultScheduleStatus,
    Definitions,
    Field,
    Int,
    JobDefinition,
    MetadataValue,
    Noneable,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    graph,
    in_process_executor,
    op,
)

from penstock.platform.definitions.names import SPARK, stream_key

if TYPE_CHECKING:
    from penstock.platform.bounded import Ran

Tell = Callable[[str], None]
Run = Callable[[str, date, int | None, Tell], "Ran"]
Hindered = Callable[[str], str | None]
EVERY_NIGHT = "0 2 * * *"


def backfill_definitions(
    pipelines: Sequence[str], first_day: date, run: Run, nightly: Collection[str], hindered: Hindered
) -> Definitions:
    """Make the jobs, and schedules of some. Dagster's backfills launch many days at once, or those that failed.

    `hindered` says why a pipeline has no archive to be run over, None where it has.
    """
    days = DailyPartitionsDefinition(start_date=first_day.isoformat())
    jobs = [_job(pipeline, days, run) for pipeline in pipelines]
    schedules = [
        _schedule(name, job, first_day, hindered)
        for name, job in zip(pipelines, jobs, strict=True)
        if name in nightly
    ]
    return Definitions(jobs=jobs, schedules=schedules)


def _schedule(pipeline: str, job: JobDefinition, first_day: date, hindered: Hindered) -> ScheduleDefinition:
    def evaluate(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        day = (context.scheduled_execution_time.date() - timedelta(days=1)).isoformat()
        if (reason := hindered(pipeline)) is not None:
            return SkipReason(reason)
        if day < first_day.isoformat():
            return SkipReason(f"{day} is before the first day of backfills")
        return RunRequest(run_key=day, partition_key=day)

    return ScheduleDefinition(
        name=f"nightly_{job.name}",
        job=job,
        cron_schedule=EVERY_NIGHT,
        execution_timezone="UTC",
        execution_fn=evaluate,
        default_status=DefaultScheduleStatus.RUNNING,
        description=f"Runs {pipeline} over what the archives took on the day before.",
    )


def _job(pipeline: str, days: DailyPartitionsDefinition, run: Run) -> JobDefinition:
    says = f"Run {pipeline} over what the archives took on a day, into runs/{pipeline}/DAY of the warehouse."
    most = Field(Noneable(Int), default_value=None, description="cut the day into such batches")

    @op(
        name=f"backfill_{pipeline}_day",
        description=says,
        config_schema={"records_per_batch": most},
        pool=SPARK,
    )
    def backfill(context: OpExecutionContext) -> None:
        day, batch = date.fromisoformat(context.partition_key), context.op_config["records_per_batch"]
        ran = run(pipeline, day, batch, lambda text: context.log.info("%s", text))
        context.log_event(
            AssetMaterialization(
                [*stream_key(pipeline).path, "backfills"],
                partition=context.partition_key,
                description=f"{ran.accounts['read']} records of {day}",
                metadata={"run": MetadataValue.json(asdict(ran)), "tables": ran.tables},
            )
        )

    @graph(name=f"backfill_{pipeline}", description=says)
    def whole() -> None:
        backfill()

    # A job of partitions takes its settings as Dagster has them: it knows no form of the job's own.
    return whole.to_job(executor_def=in_process_executor, partitions_def=days)
