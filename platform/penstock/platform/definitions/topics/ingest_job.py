"""The job that ingests a limited number of records into a topic."""

import threading
from collections.abc import Callable

from dagster import (
    AssetMaterialization,
    Bool,
    Definitions,
    Failure,
    Field,
    Int,
    JobDefinition,
    MarkdownMetadataValue,
    OpExecutionContext,
    Permissive,
    config_mapping,
    graph,
    in_process_executor,
    op,
)

from penstock.ingestion.errors import DeliveryError
from penstock.ingestion.feed import Feed, FeedLimits, FeedProgress, FeedSummary
from penstock.ingestion.sources.source_discovery import list_source_kinds
from penstock.platform.definitions.asset_keys import topic_key
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.services.feeds import FeedRequest, open_feed

INGEST_JOB = "ingest"
PROGRESS_INTERVAL_MS = 5_000
FeedOpener = Callable[[FeedRequest], Feed]


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the job for every kind of source."""
    job = build_ingest_job(list_source_kinds(), lambda request: open_feed(context.settings, request))
    return Definitions(jobs=[job])


def build_ingest_job(source_kinds: tuple[str, ...], open_feed: FeedOpener) -> JobDefinition:
    """Build the job; `open_feed` creates a feed from the launchpad's config."""
    schema = {
        "source": Field(str, description=f"The source: module:Class, or one of {', '.join(source_kinds)}."),
        "topic": Field(str, default_value="", description="The topic; default: the name of the source."),
        "options": Field(
            Permissive(),  # type: ignore[no-untyped-call]  # Dagster has no types here
            default_value={},
            description="The options of the source, such as {rate: 50, seed: 7}; see `penstock ingest --help`.",
        ),
        "count": Field(Int, default_value=1_000, description="Stop after this many records."),
        "producer": Field(str, default_value="", description="The name of the ledger."),
        "allow_invalid": Field(
            Bool, default_value=False, description="Succeed although records violate the contract."
        ),
    }

    @op(name="ingest_records", description="Ingest records into a topic.", config_schema=schema)
    def ingest(context: OpExecutionContext) -> None:
        values = dict(context.op_config)
        count, allow_invalid = values.pop("count"), values.pop("allow_invalid")
        feed = open_feed(FeedRequest(**values))
        summary = feed.run(threading.Event(), _create_progress_logger(context), FeedLimits(count=count))
        if summary.acknowledged_records > summary.dead_letters:
            context.log_event(_build_materialization(feed, summary))
        if not summary.complete:
            raise DeliveryError(
                f"{summary.producer} stopped at {summary.acknowledged_until} with records in flight. "
                "Run the job again to settle them",
                summary.acknowledged_until,
            )
        if summary.refused and not allow_invalid:
            raise Failure(
                f"{summary.dead_letters} of {summary.acknowledged_records} records violate the contract of "
                f"{feed.contract.topic}; they are in {feed.contract.dead_letter_topic}. Fix them or the contract, "
                "or set allow_invalid.",
                metadata=_describe_refused(summary),
                allow_retries=False,
            )

    @graph(name=INGEST_JOB, description="Ingest a limited number of records into a topic.")
    def job_graph() -> None:
        ingest()

    @config_mapping(config_schema=schema)
    def map_config(values: dict[str, object]) -> dict[str, object]:
        return {"ops": {"ingest_records": {"config": values}}}

    return job_graph.to_job(config=map_config, executor_def=in_process_executor)


def _create_progress_logger(context: OpExecutionContext) -> Callable[[FeedProgress], None]:
    last_logged_ms = 0

    def log_progress(progress: FeedProgress) -> None:
        nonlocal last_logged_ms
        if progress.elapsed_ms - last_logged_ms >= PROGRESS_INTERVAL_MS:
            last_logged_ms = progress.elapsed_ms
            context.log.info(
                "Progress: %d sent, %d acknowledged %s",
                progress.sent_records,
                progress.acknowledged_records,
                progress.broker_error,
            )

    return log_progress


def _build_materialization(feed: Feed, summary: FeedSummary) -> AssetMaterialization:
    return AssetMaterialization(
        topic_key(feed.contract.topic),
        description=f"{summary.acknowledged_records} records from {feed.source.description}",
        metadata={
            "producer": summary.producer,
            "records": summary.acknowledged_records,
            "dead_letters": summary.dead_letters,
            **_describe_refused(summary),
            "first_sequence": summary.first_sequence,
            "next_sequence": summary.acknowledged_until,
            "seconds": summary.elapsed_ms / 1_000,
        },
    )


def _describe_refused(summary: FeedSummary) -> dict[str, MarkdownMetadataValue]:
    """Return the reasons of refused records as a table; nothing if there are none."""
    rows = [
        f"| {each.records} | {each.reason} | {each.detail} | {each.position} |" for each in summary.refused
    ]
    table = "\n".join(["| records | reason | example | position |", "|---|---|---|---|", *rows])
    return {"refused": MarkdownMetadataValue(table)} if rows else {}
