"""Scopes of audits of streams that run in a test."""

from tests.pipelines.engine.spark.stream_runner import Running

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.host.control_reporter import to_batch_record
from penstock.quality.audit.scope import AuditScope


def create_audit_scope(running: Running, now_ms: int) -> AuditScope:
    """Return the scope of an audit at a time."""
    return AuditScope(
        plan=running.plan,
        batches=[to_batch_record(running.plan.name, outcome) for outcome in running.progress.outcomes],
        warehouse=running.folder / "warehouse",
        journal=running.folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess(running.broker.bootstrap),
        decisions_folder=running.folder / "quarantine",
        scratch_folder=running.folder / "scratch",
        clock=lambda: now_ms,
        open_session=lambda: running.session,
    )
