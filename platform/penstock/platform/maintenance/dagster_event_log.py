"""Removal of old asset events, check results and runs from Dagster's event log, which Dagster never prunes.

In SQLite, each run has its own file. Events outside runs, such as everything that sensors report, are written
twice: to the index, which is queried, and to the file of runless events, which is never read.
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

ROWS_PER_TRANSACTION = 500
FINISHED_STATUSES = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]


def prune_events(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove asset events older than a time, except the newest of each asset and kind; return their number.

    Dagster has no call for this: `wipe_assets` removes an asset completely. Every SQL storage uses this table.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    table = SqlEventLogStorageTable
    newest_ids = (
        select(func.max(table.c.id))
        .where(table.c.asset_key.is_not(None))
        .group_by(table.c.asset_key, table.c.dagster_event_type, table.c.partition)
    )
    with storage.index_connection() as connection:
        retained_ids = set(connection.execute(newest_ids).scalars())
        old_ids = select(table.c.id).where(
            table.c.asset_key.is_not(None), table.c.timestamp < before.replace(tzinfo=None)
        )
        expired_ids = [
            row_id for row_id in connection.execute(old_ids).scalars() if row_id not in retained_ids
        ]
    if not dry_run:
        _delete_rows(storage, expired_ids, AssetEventTagsTable.c.event_id, table.c.id)
    if not dry_run and isinstance(storage, SqliteEventLogStorage):
        _prune_runless_copies(storage, before)
    return len(expired_ids)


def prune_checks(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove check results older than a time, except the newest of each check and outcome; return their number.

    A check resumes from its newest evaluation, however old that is.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    table = AssetCheckExecutionsTable
    newest_ids = select(func.max(table.c.id)).group_by(
        table.c.asset_key, table.c.check_name, table.c.partition, table.c.execution_status
    )
    with storage.index_connection() as connection:
        retained_ids = set(connection.execute(newest_ids).scalars())
        old_ids = select(table.c.id).where(table.c.create_timestamp < before.replace(tzinfo=None))
        expired_ids = [
            row_id for row_id in connection.execute(old_ids).scalars() if row_id not in retained_ids
        ]
    if not dry_run:
        _delete_rows(storage, expired_ids, table.c.id)
    return len(expired_ids)


def prune_runs(instance: DagsterInstance, before: datetime, *, dry_run: bool) -> int:
    """Remove runs that ended before a time, with their logs and output; return their number."""
    run_filter = RunsFilter(statuses=FINISHED_STATUSES, updated_before=before)
    removed_count = 0
    while run_records := instance.get_run_records(run_filter, limit=ROWS_PER_TRANSACTION, cursor=None):
        if dry_run:
            return instance.get_runs_count(run_filter)
        for record in run_records:
            _delete_run(instance, record.dagster_run.run_id)
        removed_count += len(run_records)
    return removed_count


def _delete_run(instance: DagsterInstance, run_id: str) -> None:
    """Delete a run and its files; Dagster would keep an empty event log and the captured output."""
    instance.delete_run(run_id)
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        log_file = Path(storage.path_for_shard(run_id))
        for path in (
            log_file,
            *(log_file.with_name(f"{log_file.name}{suffix}") for suffix in ("-wal", "-shm")),
        ):
            path.unlink(missing_ok=True)
    if isinstance(instance.compute_log_manager, LocalComputeLogManager):
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    shutil.rmtree(Path(instance.storage_directory()) / run_id, ignore_errors=True)


def _prune_runless_copies(storage: SqliteEventLogStorage, before: datetime) -> None:
    """Remove old duplicates of events outside runs; the index has those that stay."""
    table = SqlEventLogStorageTable
    old_ids = (
        select(table.c.id).where(table.c.timestamp < before.replace(tzinfo=None)).limit(ROWS_PER_TRANSACTION)
    )
    removed_count = ROWS_PER_TRANSACTION
    while removed_count == ROWS_PER_TRANSACTION:
        with storage.run_connection(RUNLESS_RUN_ID) as connection:
            removed_count = connection.execute(delete(table).where(table.c.id.in_(old_ids))).rowcount


def _delete_rows(storage: SqlEventLogStorage, row_ids: Sequence[int], *columns: "Column[int]") -> None:
    """Delete rows, a few in each transaction: other writers wait for it, and in SQLite only for seconds."""
    for start in range(0, len(row_ids), ROWS_PER_TRANSACTION):
        with storage.index_connection() as connection:
            for column in columns:
                is_selected = column.in_(row_ids[start : start + ROWS_PER_TRANSACTION])
                connection.execute(delete(column.table).where(is_selected))
