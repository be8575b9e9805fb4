"""Dagster's event log, which Dagster itself never prunes: old events of assets, old checks, and old runs.

In SQLite each run has a file of its own, and what no run logged, which is all that sensors tell of streams, is
written twice: to the index that everybody asks, and to the file of no run, which nobody does.
"""

import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from sqlalchemy import Column, delete, func, select

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
        _remove(storage, gone, AssetEventTagsTable.c.event_id, table.c.id)
    if not dry_run and isinstance(storage, SqliteEventLogStorage):
        _forget_copies(storage, before)
    return len(gone)


def forget_checks(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove what came of checks before a moment; of each check the newest of each outcome stays.

    Returns how many. What a check goes on from is in its newest evaluation, however long ago that was.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    table = AssetCheckExecutionsTable
    newest = select(func.max(table.c.id)).group_by(
        table.c.asset_key, table.c.check_name, table.c.partition, table.c.execution_status
    )
    with storage.index_connection() as connection:
        kept = set(connection.execute(newest).scalars())
        old = select(table.c.id).where(table.c.create_timestamp < before.replace(tzinfo=None))
        gone = [number for number in connection.execute(old).scalars() if number not in kept]
    if not dry_run:
        _remove(storage, gone, table.c.id)
    return len(gone)


def forget_runs(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove runs that ended before a moment, with what they logged and printed. Returns how many."""
    wanted = RunsFilter(statuses=OVER, updated_before=before)
    removed = 0
    while found := instance.get_run_records(wanted, limit=AT_ONCE, cursor=None):
        if dry_run:
            return instance.get_runs_count(wanted)
        for record in found:
            _forget_run(instance, record.dagster_run.run_id)
        removed += len(found)
    return removed


def _forget_run(instance: DagsterInstance, run: str) -> None:
    """Forget a run, and then its files: Dagster would leave an empty event log, and all that it printed."""
    instance.delete_run(run)
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        log = Path(storage.path_for_shard(run))
        for path in (log, *(log.with_name(f"{log.name}{more}") for more in ("-wal", "-shm"))):
            path.unlink(missing_ok=True)
    if isinstance(instance.compute_log_manager, LocalComputeLogManager):
        instance.compute_log_manager.delete_logs(prefix=[run])
    shutil.rmtree(Path(instance.storage_directory()) / run, ignore_errors=True)


def _forget_copies(storage: SqliteEventLogStorage, before: datetime) -> None:
    """Remove the old second copies of what no run logged; the index has those that are to stay."""
    table = SqlEventLogStorageTable
    old = select(table.c.id).where(table.c.timestamp < before.replace(tzinfo=None)).limit(AT_ONCE)
    removed = AT_ONCE
    while removed == AT_ONCE:
        with storage.run_connection(RUNLESS_RUN_ID) as connection:
            removed = connection.execute(delete(table).where(table.c.id.in_(old))).rowcount


def _remove(storage: SqlEventLogStorage, numbers: Sequence[int], *columns: "Column[int]") -> None:
    """Remove rows, a few in a transaction: who logs anything waits for it, and in SQLite for seconds only."""
    for begin in range(0, len(numbers), AT_ONCE):
        with storage.index_connection() as connection:
            for column in columns:
                part = column.in_(numbers[begin : begin + AT_ONCE])
                connection.execute(delete(column.table).where(part))
