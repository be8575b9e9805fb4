"""Audits of streams, for the command line, Dagster's checks and its schedule."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.clock import now_ms
from penstock.core.progress import ProgressReporter
from penstock.engine.archive.archive_names import archive_name, is_compacted
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.stages import Plan
from penstock.engine.stream_folders import resolve_stream_folder
from penstock.engine.upgrade.kept_future_skew import keep_stored_skew
from penstock.engine.upgrade.stored_plan import read_stored_plan
from penstock.engine.user_modules import find_pipeline_file
from penstock.ingestion.contracts import list_contract_names
from penstock.ingestion.ledger.reader import list_segments
from penstock.platform.control import open_control_store
from penstock.platform.control.reports import read_batch_history
from penstock.platform.errors import SampleError
from penstock.platform.services.audited_rewrites import describe_rewrite
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.services.schema_registry import open_writer_schemas
from penstock.platform.services.stream_catalog import check_pipeline_exists, load_plan
from penstock.platform.settings import Settings
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audit_stream(
    settings: Settings, stream: str, sample: Sample, report_progress: ProgressReporter
) -> AuditReport:
    """Audit a stream up to its last batch. Spark starts when the first check needs it."""
    _load_audited_plan(settings, stream)  # an unknown stream is refused before the control store is opened
    batches = read_committed_batches(settings, stream)
    with ExitStack() as exit_stack:

        @cache
        def session() -> "SparkSession":
            return exit_stack.enter_context(open_command_spark(settings, f"audit-{stream}", report_progress))

        return _audit_scope(build_scope(settings, stream, batches, session, report_progress), sample)


def _audit_scope(scope: AuditScope, sample: Sample) -> AuditReport:
    from penstock.quality.audit.runner import run_audit

    return run_audit(scope, sample)


def build_scope(
    settings: Settings,
    stream: str,
    batches: list[BatchRecord],
    session: "Callable[[], SparkSession]",
    report_progress: ProgressReporter,
) -> AuditScope:
    """Return the scope of an audit: a pipeline of the catalog with the paths and clients of these settings.

    A stream whose file was removed is audited by the stored definition of its state.
    """
    plan = _load_audited_plan(settings, stream)
    return AuditScope(
        plan=plan,
        batches=batches,
        warehouse=settings.warehouse_path,
        journal=resolve_stream_folder(settings.home / "streams", stream) / "journal",
        producer_ledgers=find_producer_ledgers(settings.home / "producers"),
        broker=settings.kafka.broker_access("host"),
        decisions_folder=settings.home / "quarantine",
        scratch_folder=settings.home / "audits" / stream,
        clock=now_ms,
        open_session=session,
        schemas=open_writer_schemas(settings).find_readable,
        report_progress=report_progress,
        describe_rewrite=partial(describe_rewrite, settings, stream),
        archived_topics=list_archived_topics(settings, plan),
        compacted_topics=list_compacted_topics(plan),
        archive_journals={
            topic: settings.home / "streams" / archive_name(topic) / "journal"
            for topic in map(topic_of, plan.sources)
        },
    )


def _load_audited_plan(settings: Settings, stream: str) -> Plan:
    folder = resolve_stream_folder(settings.home / "streams", stream)
    if find_pipeline_file(stream) is None:
        stored = read_stored_plan(folder)
        if stored is not None:
            return stored
    check_pipeline_exists(stream)
    return keep_stored_skew(folder, load_plan(stream))


def read_committed_batches(settings: Settings, stream: str) -> list[BatchRecord]:
    """Return the batches of a stream from the control store."""
    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        return read_batch_history(store, stream)
    finally:
        store.close()


def list_archived_topics(settings: Settings, plan: Plan) -> tuple[str, ...]:
    """Return the topics of a plan whose archive has committed a batch."""
    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        return tuple(
            topic
            for topic in map(topic_of, plan.sources)
            if store.read_last_batch(archive_name(topic)) is not None
        )
    finally:
        store.close()


def list_compacted_topics(plan: Plan) -> tuple[str, ...]:
    """Return the topics of a plan that are compacted according to their contracts."""
    declared_topics = list_contract_names()
    return tuple(
        topic for topic in map(topic_of, plan.sources) if topic in declared_topics and is_compacted(topic)
    )


def find_producer_ledgers(folder: Path) -> Mapping[str, Path]:
    """Return the ledger folder of every producer in this home folder, by producer name."""
    folders = sorted(folder.iterdir()) if folder.exists() else []
    return {
        ledger_folder.name: ledger_folder
        for ledger_folder in folders
        if ledger_folder.is_dir() and list_segments(ledger_folder)
    }


def parse_sample(key_share: float, since: datetime | None, until: datetime | None) -> Sample:
    """Return the sample for these options; times are UTC. Raises SampleError for invalid values."""
    if not 0 < key_share <= 1:
        raise SampleError(
            f"--keys {key_share:g} is not a share; use a value above 0 and up to 1, for example --keys 0.1"
        )
    if since is not None and until is not None and until <= since:
        raise SampleError(f"--until {until} is not after --since {since}; choose a later --until")
    start, end = (
        None if time is None else round(time.replace(tzinfo=UTC).timestamp() * 1000)
        for time in (since, until)
    )
    return Sample(key_share, start, end)
