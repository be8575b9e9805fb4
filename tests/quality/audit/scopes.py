"""What an audit is told of a stream that runs in a test."""

from tests.pipelines.engine.spark.running import Running

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.host.control_reporter import to_batch_record
from penstock.quality.audit.scope import AuditScope


def scope_of(running: Running, now: int) -> AuditScope:
    """The scope of an audit that is made at a moment."""
    return AuditScope(
        plan=running.plan,
        batches=[to_batch_record(running.plan.name, outcome) for outcome in running.progress.outcomes],
        warehouse=running.folder / "warehouse",
        journal=running.folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess(running.broker.bootstrap),
        decisions_folder=running.folder / "quarantine",
        scratch_folder=running.folder / "scratch",
        clock=lambda: now,
        open_session=lambda: running.session,
    )
