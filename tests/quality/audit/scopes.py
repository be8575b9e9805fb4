"""What an audit is told of a stream that runs in a test."""

from tests.pipelines.spark.running import Running

from penstock.pipelines.host.telling import batch_record
from penstock.quality.audit.scope import Broker, Scope


def scope_of(running: Running, now: int) -> Scope:
    """The scope of an audit that is made at a moment."""
    return Scope(
        plan=running.plan,
        batches=[batch_record(running.plan.name, outcome) for outcome in running.progress.outcomes],
        warehouse=running.folder / "warehouse",
        journal=running.folder / "stream" / "journal",
        producers={},
        broker=Broker(running.broker.bootstrap),
        decisions=running.folder / "quarantine",
        scratch=running.folder / "scratch",
        clock=lambda: now,
        session=lambda: running.session,
    )
