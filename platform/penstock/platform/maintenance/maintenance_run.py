"""One round of maintenance. It can run at any time beside running streams, and again after a failure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.progress import ProgressReporter
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.storage import StoragePath
from penstock.engine.stream_folders import resolve_stream_folder
from penstock.platform.control import ControlStore
from penstock.platform.maintenance.control_store_rows import prune_batches, prune_hosts
from penstock.platform.maintenance.replay_leftovers import (
    list_stream_folders,
    remove_leftover_tables,
    remove_old_folders,
)
from penstock.platform.maintenance.table_upkeep import merge_tables, remove_unneeded_files
from penstock.platform.services.stream_catalog import load_valid_plans
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from dagster import DagsterInstance

DAY_MS = 86_400_000


@dataclass(frozen=True)
class MaintenanceAction:
    """What was done, to what, and how many items it affected."""

    action: str
    target: str
    count: int


def run_maintenance(
    settings: Settings,
    store: ControlStore,
    instance: "DagsterInstance | None",
    now_ms: int,
    report_progress: ProgressReporter = lambda _: None,
    *,
    dry_run: bool = False,
) -> list[MaintenanceAction]:
    """Run one round; with `dry_run`, list what it would remove and merge nothing."""
    actions: list[MaintenanceAction] = []
    for action in _run_actions(settings, store, instance, now_ms, dry_run):
        report_progress(f"{action.target}: {action.action} {action.count}")
        actions.append(action)
    return actions


def _run_actions(
    settings: Settings, store: ControlStore, instance: "DagsterInstance | None", now_ms: int, dry_run: bool
) -> Iterator[MaintenanceAction]:
    retention, streams, warehouse = settings.maintenance, settings.home / "streams", settings.warehouse_path
    if not dry_run:
        yield from _merge_tables(streams, warehouse, now_ms)
    for table, count in remove_unneeded_files(
        warehouse, list_stream_folders(streams), retention.file_retention, now_ms, dry_run=dry_run
    ):
        yield MaintenanceAction("files removed", table, count)
    for path in remove_old_folders(streams, retention.file_retention, now_ms, dry_run=dry_run):
        yield MaintenanceAction("replay leftovers removed", str(path.relative_to(streams)), 1)
        if leftover_path := remove_leftover_tables(settings.home, warehouse, path, dry_run=dry_run):
            yield MaintenanceAction("replay leftovers removed", leftover_path, 1)
    rows_before_ms = now_ms - retention.batch_retention
    yield MaintenanceAction(
        "batches removed", "control store", prune_batches(store, rows_before_ms, dry_run=dry_run)
    )
    yield MaintenanceAction(
        "hosts removed", "control store", prune_hosts(store, now_ms - DAY_MS, dry_run=dry_run)
    )
    if instance is not None:
        from penstock.platform.maintenance.dagster_event_log import prune_checks, prune_events, prune_runs

        expired_before = datetime.fromtimestamp((now_ms - retention.event_retention) / 1000, UTC)
        yield MaintenanceAction(
            "events removed", "dagster", prune_events(instance, expired_before, dry_run=dry_run)
        )
        yield MaintenanceAction(
            "checks removed", "dagster", prune_checks(instance, expired_before, dry_run=dry_run)
        )
        yield MaintenanceAction(
            "runs removed", "dagster", prune_runs(instance, expired_before, dry_run=dry_run)
        )


def _merge_tables(streams: Path, warehouse: StoragePath, now_ms: int) -> Iterator[MaintenanceAction]:
    for plan in load_valid_plans():
        last_outcome = BatchJournal(resolve_stream_folder(streams, plan.name) / "journal").read_last_outcome()
        if last_outcome is not None:
            for table, merge_counts in merge_tables(warehouse, plan, last_outcome, now_ms):
                yield MaintenanceAction(
                    f"files merged into {merge_counts.new_files}", table, merge_counts.merged_files
                )
