"""Dagster's event log, which Dagster itself never prunes: old events of assets, and old runs."""

from datetime import datetime

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from sqlalchemy import delete, func, select

AT_ONCE = 500
OVER = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]


def forget_events(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove events of assets from before a moment; of each asset and kind the newest stays. Returns how many.

    Dagster has no call for it: `wipe_assets` forgets an asset as a whole. The table is that of every SQL storage.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    table = SqlEventLogStorageTable
    newest = (
        select(func.max(table.c.id))
        .where(table.c.asset_key.is_not(None))
        .group_by(table.c.asset_key, table.c.dagster_event_type, table.c.partition)
    )
    with storage.index_connection() as connection:
        kept = set(connection.execute(newest).scalars())
        old = select(table.c.id).where(
            table.c.asset_key.is_not(None), table.c.timestamp < before.replace(tzinfo=None)
        )
        gone = [number for number in connection.execute(old).scalars() if number not in kept]
        if not dry_run:
            for begin in range(0, len(gone), AT_ONCE):
                connection.execute(delete(table).where(table.c.id.in_(gone[begin : begin + AT_ONCE])))
    return len(gone)


def forget_runs(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove runs that ended before a moment, with what they logged. Returns how many."""
    wanted = RunsFilter(statuses=OVER, updated_before=before)
    removed = 0
    while found := instance.get_run_records(wanted, limit=AT_ONCE, cursor=None):
        if dry_run:
            return instance.get_runs_count(wanted)
        for record in found:
            instance.delete_run(record.dagster_run.run_id)
        removed += len(found)
    return removed
