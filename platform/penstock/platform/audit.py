"""From settings to the audit of a stream: what people, Dagster's checks and the schedule all ask for."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.infra.kafka_access import spark_source
from penstock.ingestion.contracts import contract_names
from penstock.ingestion.ledger.reading import segments
from penstock.pipelines.archive.names import archive_of, is_compacted
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.catalog import names
from penstock.pipelines.host.control import BatchRecord
from penstock.pipelines.host.folders import folder_of_stream
from penstock.pipelines.plan import Plan
from penstock.platform.clock import now_ms
from penstock.platform.control import open_control
from penstock.platform.control.reports import history
from penstock.platform.errors import SampleError, UnknownStreamError
from penstock.platform.local_spark import spark_session
from penstock.platform.registry import schemas_of
from penstock.platform.settings import Settings
from penstock.platform.streams import plan_of
from penstock.quality.audit.comparable import Sample
from penstock.quality.audit.scope import Broker, Scope
from penstock.quality.audit.verdict import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]


def audit_stream(settings: Settings, stream: str, sample: Sample, tell: Tell) -> Report:
    """Audit a stream as it is now. Spark is started when the first check wants it."""
    if stream not in names():
        raise UnknownStreamError(f"there is no pipeline {stream!r} to audit; there are: {', '.join(names())}")
    batches = committed(settings, stream)
    with ExitStack() as opened:

        @cache
        def session() -> "SparkSession":
            return opened.enter_context(spark_session(settings, f"audit-{stream}", tell))

        return _audit(scope_of(settings, stream, batches, session, tell), sample)


def _audit(scope: Scope, sample: Sample) -> Report:
    from penstock.quality.audit.audit import audit

    return audit(scope, sample)


def scope_of(
    settings: Settings,
    stream: str,
    batches: list[BatchRecord],
    session: "Callable[[], SparkSession]",
    tell: Tell,
) -> Scope:
    """Return what is audited: a stream of the catalog, where these settings have it."""
    kafka, plan = settings.kafka, plan_of(stream)
    return Scope(
        plan=plan,
        batches=batches,
        warehouse=settings.tables,
        journal=folder_of_stream(settings.home / "streams", stream) / "journal",
        producers=producers(settings.home / "producers"),
        broker=Broker(kafka.servers, kafka.client("host"), spark_source(kafka.access, "host")),
        decisions=settings.home / "quarantine",
        scratch=settings.home / "audits" / stream,
        clock=now_ms,
        session=session,
        schemas=schemas_of(settings).of,
        tell=tell,
        archives=archives(settings, plan),
        compacted=compacted(plan),
        archive_journals={
            topic: settings.home / "streams" / archive_of(topic) / "journal"
            for topic in map(topic_of, plan.sources)
        },
    )


def committed(settings: Settings, stream: str) -> list[BatchRecord]:
    """Return the batches that the control store knows of a stream."""
    store = open_control(settings.control_url, settings.control_secret)
    try:
        return history(store, stream)
    finally:
        store.close()


def archives(settings: Settings, plan: Plan) -> tuple[str, ...]:
    """Return the topics of a plan whose archives have committed batches."""
    store = open_control(settings.control_url, settings.control_secret)
    try:
        return tuple(
            topic for topic in map(topic_of, plan.sources) if store.last_batch(archive_of(topic)) is not None
        )
    finally:
        store.close()


def compacted(plan: Plan) -> tuple[str, ...]:
    """Return the topics of a plan that are compacted, as their contracts have them."""
    known = contract_names()
    return tuple(topic for topic in map(topic_of, plan.sources) if topic in known and is_compacted(topic))


def producers(folder: Path) -> Mapping[str, Path]:
    """Return the ledger of every producer of this home folder, by its name."""
    there = sorted(folder.iterdir()) if folder.exists() else []
    return {place.name: place for place in there if place.is_dir() and segments(place)}


def sample_of(keys: float, since: datetime | None, until: datetime | None) -> Sample:
    """Return a sample as people ask for it; times are UTC."""
    if not 0 < keys <= 1:
        raise SampleError(f"--keys {keys:g} is no share: give more than 0 and at most 1, as in --keys 0.1")
    if since is not None and until is not None and until <= since:
        raise SampleError(f"--until {until} is not after --since {since}: give a stretch that windows fit in")
    start, end = (
        None if at is None else round(at.replace(tzinfo=UTC).timestamp() * 1000) for at in (since, until)
    )
    return Sample(keys, start, end)
