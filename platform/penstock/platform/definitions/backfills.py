"""A job for each pipeline that runs it over a day of its topics' archives: one partition a day."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING

from dagster import (
    AssetMaterialization,
    DailyPartitionsDefinition,
    Field,
    Int,
    JobDefinition,
    MetadataValue,
    Noneable,
    OpExecutionContext,
    graph,
    in_process_executor,
    op,
)

from penstock.platform.definitions.names import stream_key

if TYPE_CHECKING:
    from penstock.platform.bounded import Ran

Tell = Callable[[str], None]
Run = Callable[[str, date, int | None, Tell], "Ran"]


def backfill_jobs(pipelines: Sequence[str], first_day: date, run: Run) -> Iterator[JobDefinition]:
    """Make the jobs. Dagster's backfills launch many days at once, or those that failed."""
    days = DailyPartitionsDefinition(start_date=first_day.isoformat())
    for pipeline in pipelines:
        yield _job(pipeline, days, run)


def _job(pipeline: str, days: DailyPartitionsDefinition, run: Run) -> JobDefinition:
    says = f"Run {pipeline} over what the archives took on a day, into runs/{pipeline}/DAY of the warehouse."
    most = Field(Noneable(Int), default_value=None, description="cut the day into such batches")

    @op(name=f"backfill_{pipeline}_day", description=says, config_schema={"records_per_batch": most})
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
