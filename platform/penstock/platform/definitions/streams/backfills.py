"""Backfills: an asset and a job for each pipeline, with one partition for each day of its topics' archives.

A schedule runs the partition of the day before each night, for the pipelines that the settings name.
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

from penstock.core.progress import ProgressReporter
from penstock.engine.archive.archive_names import archive_name, records_path
from penstock.engine.storage.file_access import is_delta_table
from penstock.platform.definitions.asset_keys import (
    SPARK_POOL,
    archive_key,
    backfill_key,
    list_plan_topics,
)
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.services.stream_catalog import find_definition_error, load_plan
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

    from penstock.platform.services.bounded_runs import BoundedRunResult

DayRunner = Callable[[str, date, int | None, ProgressReporter], "BoundedRunResult"]
BlockedReason = Callable[[str], str | None]
NIGHTLY_CRON = "0 2 * * *"


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the backfills of every pipeline; an invalid one is shown without its topics."""
    settings = context.settings

    def run_day(
        stream: str, day: date, records_per_batch: int | None, report_progress: ProgressReporter
    ) -> "BoundedRunResult":
        from penstock.platform.services.bounded_runs import run_over_stored_records

        return run_over_stored_records(settings, stream, None, None, records_per_batch, report_progress, day)

    return build_backfill_definitions(
        {
            name: list_plan_topics(load_plan(name)) if find_definition_error(name) is None else ()
            for name in context.pipeline_names
        },
        date.fromisoformat(settings.dagster.first_day),
        run_day,
        settings.dagster.nightly_backfills,
        lambda stream: _explain_missing_archive(settings, stream),
    )


def _explain_missing_archive(settings: Settings, stream: str) -> str | None:
    """Return why a backfill cannot read the archives of a stream; None if it can."""
    if (error := find_definition_error(stream)) is not None:
        return str(error)
    for topic in list_plan_topics(load_plan(stream)):
        if not is_delta_table(settings.warehouse_path / records_path(topic)):
            return f"{topic} has no archive. Run `penstock stream start {archive_name(topic)}`"
    return None


def build_backfill_definitions(
    pipelines: Mapping[str, Sequence[str]],
    first_day: date,
    run_day: DayRunner,
    nightly: Collection[str],
    blocked_reason: BlockedReason,
) -> Definitions:
    """Build the assets and jobs of pipelines, given with their topics, and the schedules of the nightly ones.

    `blocked_reason` returns why a pipeline has no archive to read, None if it has.
    """
    days = DailyPartitionsDefinition(start_date=first_day.isoformat())
    jobs = {pipeline: _build_job(pipeline) for pipeline in pipelines}
    return Definitions(
        assets=[_build_asset(pipeline, topics, days, run_day) for pipeline, topics in pipelines.items()],
        jobs=list(jobs.values()),
        schedules=[
            _build_schedule(name, job, first_day, blocked_reason)
            for name, job in jobs.items()
            if name in nightly
        ],
    )


def _build_schedule(
    pipeline: str, job: "UnresolvedAssetJobDefinition", first_day: date, blocked_reason: BlockedReason
) -> ScheduleDefinition:
    def evaluate(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        day = (context.scheduled_execution_time.date() - timedelta(days=1)).isoformat()
        if (reason := blocked_reason(pipeline)) is not None:
            return SkipReason(reason)
        if day < first_day.isoformat():
            return SkipReason(f"{day} is before dagster.first_day")
        return RunRequest(run_key=day, partition_key=day)

    return ScheduleDefinition(
        name=f"nightly_{job.name}",
        job=job,
        cron_schedule=NIGHTLY_CRON,
        execution_timezone="UTC",
        execution_fn=evaluate,
        default_status=DefaultScheduleStatus.RUNNING,
        description=f"Runs {pipeline} over the records that were archived on the day before.",
    )


def _build_asset(
    pipeline: str, topics: Sequence[str], days: DailyPartitionsDefinition, run_day: DayRunner
) -> AssetsDefinition:
    records_field = Field(
        Noneable(Int), default_value=None, description="approximate records per batch; default: one batch"
    )
    spec = AssetSpec(
        backfill_key(pipeline),
        deps=[archive_key(topic) for topic in topics],
        description=_describe_backfill(pipeline),
        group_name="backfills",
        kinds={"deltalake"},
    )

    @multi_asset(
        name=f"backfill_{pipeline}_day",
        specs=[spec],
        partitions_def=days,
        config_schema={"records_per_batch": records_field},
        pool=SPARK_POOL,
    )
    def backfill(context: AssetExecutionContext) -> MaterializeResult[None]:
        day, op_config = date.fromisoformat(context.partition_key), context.op_execution_context.op_config
        run_result = run_day(
            pipeline, day, op_config["records_per_batch"], lambda text: context.log.info("%s", text)
        )
        return MaterializeResult(
            asset_key=spec.key,
            metadata={
                "run": MetadataValue.json(asdict(run_result)),
                "tables": run_result.tables,
                "records": run_result.accounts["read"],
            },
        )

    return backfill


def _build_job(pipeline: str) -> "UnresolvedAssetJobDefinition":
    # A partitioned job cannot map config, so it shows Dagster's own form.
    return define_asset_job(
        f"backfill_{pipeline}",
        AssetSelection.assets(backfill_key(pipeline)),
        description=_describe_backfill(pipeline),
        executor_def=in_process_executor,
    )


def _describe_backfill(pipeline: str) -> str:
    return f"Run {pipeline} over the records archived on a day, into runs/{pipeline}/DAY of the warehouse."
