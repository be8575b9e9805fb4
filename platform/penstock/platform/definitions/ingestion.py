"""The job that brings a bounded number of records into a topic."""

import threading
from collections.abc import Callable

from dagster import (
    AssetMaterialization,
    Enum,
    EnumValue,
    Field,
    Int,
    JobDefinition,
    Noneable,
    OpExecutionContext,
    config_mapping,
    graph,
    in_process_executor,
    op,
)

from penstock.ingestion.errors import DeliveryError
from penstock.ingestion.feed import Feed, Limits, Progress, Summary
from penstock.platform.definitions.names import topic_key
from penstock.platform.feeds import FeedOrder

JOB = "ingest"
TOLD_EVERY_MS = 5_000
Open = Callable[[FeedOrder], Feed]


def ingestion_job(kinds: tuple[str, ...], open_feed: Open) -> JobDefinition:
    """Make the job; `open_feed` makes a feed of what the launchpad was told."""
    source = Enum("SourceName", [EnumValue(kind) for kind in kinds])
    schema = {
        "source": Field(source, description="where the records come from"),
        "topic": Field(str, default_value="", description="where to; the source's name without"),
        "place": Field(str, default_value="", description="a file, a folder, a URL, or host:port"),
        "count": Field(Int, default_value=1_000, description="end after so many, or with the source"),
        "rate": Field(Noneable(float), default_value=None, description="records a second; else at once"),
        "seed": Field(Noneable(int), default_value=None, description="where random numbers begin"),
        "producer": Field(str, default_value="", description="the ledger's name"),
    }

    @op(name="ingest_records", description="Bring records into a topic.", config_schema=schema)
    def ingest(context: OpExecutionContext) -> None:
        values = dict(context.op_config)
        count = values.pop("count")
        feed = open_feed(FeedOrder(**values))
        summary = feed.run(threading.Event(), _logged(context), Limits(count=count))
        context.log_event(_materialization(feed, summary))
        if not summary.complete:
            raise DeliveryError(
                f"{summary.producer} reached {summary.reached}, others are in flight: run it again to settle them",
                summary.reached,
            )

    @graph(name=JOB, description="Bring a number of records into a topic, and account for each.")
    def whole() -> None:
        ingest()

    @config_mapping(config_schema=schema)
    def flat(values: dict[str, object]) -> dict[str, object]:
        return {"ops": {"ingest_records": {"config": values}}}

    return whole.to_job(config=flat, executor_def=in_process_executor)


def _logged(context: OpExecutionContext) -> Callable[[Progress], None]:
    last = 0

    def tell(now: Progress) -> None:
        nonlocal last
        if now.milliseconds - last >= TOLD_EVERY_MS:
            last = now.milliseconds
            context.log.info("%d sent, %d acknowledged %s", now.sent, now.acknowledged, now.heard)

    return tell


def _materialization(feed: Feed, summary: Summary) -> AssetMaterialization:
    return AssetMaterialization(
        topic_key(feed.contract.topic),
        description=f"{summary.acknowledged} records of {feed.source.description}",
        metadata={
            "producer": summary.producer,
            "records": summary.acknowledged,
            "dead_letters": summary.dead_letters,
            "first_sequence": summary.first,
            "next_sequence": summary.reached,
            "seconds": summary.milliseconds / 1_000,
        },
    )
