"""Scopes of audits of streams that run in a test."""

from tests.pipelines.engine.spark.stream_runner import StreamRunner

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.host.control_reporter import to_batch_record
from penstock.quality.audit.scope import AuditScope


def create_audit_scope(runner: StreamRunner, now_ms: int) -> AuditScope:
    """Return the scope of an audit at a time."""
    return AuditScope(
        plan=runner.plan,
        batches=[to_batch_record(runner.plan.name, outcome) for outcome in runner.progress.outcomes],
        warehouse=runner.folder / "warehouse",
        journal=runner.folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess(runner.broker.bootstrap),
        decisions_folder=runner.folder / "quarantine",
        scratch_folder=runner.folder / "scratch",
        clock=lambda: now_ms,
        open_session=lambda: runner.session,
    )
