"""An asset for each pipeline, and its job: what it makes of its topics' archives, one partition a day.

A schedule does so each night, for the day before, of the pipelines that are asked for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    DailyPartitionsDefinition,
    DefaultScheduleStatus,
    Definitions,
    Field,
    Int,
    MaterializeResult,
    MetadataValue,
    Noneable,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    define_asset_job,
    in_process_executor,
    multi_asset,
)

from penstock.platform.definitions.names import SPARK, raw_key, runs_key

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    from penstock.platform.bounded import Ran

Tell = Callable[[str], None]
Run = Callable[[str, date, int | None, Tell], "Ran"]
Hindered = Callable[[str], str | None]
EVERY_NIGHT = "0 2 * * *"


def backfill_definitions(
    pipelines: Mapping[str, Sequence[str]],
    first_day: date,
    run: Run,
    nightly: Collection[str],
    hindered: Hindered,
) -> Definitions:
    """Make assets and jobs of pipelines, which come with their topics, and schedules of some.

    Dagster's backfills launch many days at once, or those that failed. `hindered` says why a pipeline has no
    archive to be run over, None where it has.
    """
    days = DailyPartitionsDefinition(start_date=first_day.isoformat())
    jobs = {pipeline: _job(pipeline) for pipeline in pipelines}
    return Definitions(
        assets=[_asset(pipeline, topics, days, run) for pipeline, topics in pipelines.items()],
        jobs=list(jobs.values()),
        schedules=[
            _schedule(name, job, first_day, hindered) for name, job in jobs.items() if name in nightly
        ],
    )


def _schedule(
    pipeline: str, job: "UnresolvedAssetJobDefinition", first_day: date, hindered: Hindered
) -> ScheduleDefinition:
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


def _asset(
    pipeline: str, topics: Sequence[str], days: DailyPartitionsDefinition, run: Run
) -> AssetsDefinition:
    most = Field(Noneable(Int), default_value=None, description="cut the day into batches of about so many")
    spec = AssetSpec(
        runs_key(pipeline),
        deps=[raw_key(topic) for topic in topics],
        description=_says(pipeline),
        group_name="backfills",
        kinds={"deltalake"},
    )

    @multi_asset(
        name=f"backfill_{pipeline}_day",
        specs=[spec],
        partitions_def=days,
        config_schema={"records_per_batch": most},
        pool=SPARK,
    )
    def backfill(context: AssetExecutionContext) -> MaterializeResult[None]:
        day, batch = date.fromisoformat(context.partition_key), context.op_execution_context.op_config
        ran = run(pipeline, day, batch["records_per_batch"], lambda text: context.log.info("%s", text))
        return MaterializeResult(
            asset_key=spec.key,
            metadata={
                "run": MetadataValue.json(asdict(ran)),
                "tables": ran.tables,
                "records": ran.accounts["read"],
            },
        )

    return backfill


def _job(pipeline: str) -> "UnresolvedAssetJobDefinition":
    # A job of partitions takes its settings as Dagster has them: it knows no form of the job's own.
    return define_asset_job(
        f"backfill_{pipeline}",
        AssetSelection.assets(runs_key(pipeline)),
        description=_says(pipeline),
        executor_def=in_process_executor,
    )


def _says(pipeline: str) -> str:
    return f"Run {pipeline} over what the archives took on a day, into runs/{pipeline}/DAY of the warehouse."
