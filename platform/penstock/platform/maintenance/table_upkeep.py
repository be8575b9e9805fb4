"""Upkeep of the warehouse: merging small files, and removing files that no table or journal refers to."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.plan.sinks import FileMerging, TableSink
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.changelog_topic import ChangelogTopic
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import (
    is_delta_table,
    list_children,
    list_files,
    list_warehouse_tables,
)
from penstock.engine.tables.file_maintenance import (
    FileMergeCounts,
    merge_small_files,
    remove_unreferenced_files,
)
from penstock.engine.tables.table_paths import (
    list_owned_paths,
    list_quarantine_paths,
    list_result_paths,
)

MS_PER_HOUR = 3_600_000
STAGING_FOLDERS = (ChangelogTopic.folder, TableSink.folder)
"""The folders with rows that wait for a commit to a topic, or to another sink that is not a Delta table."""


def merge_tables(
    warehouse: StoragePath, plan: Plan, last_outcome: BatchOutcome, clock_ms: int
) -> Iterator[tuple[str, FileMergeCounts]]:
    """Merge the small files of a stream's tables; yields the counts of each table that had enough of them."""
    for path, closed_before in _list_mergeable_tables(plan, last_outcome):
        if is_delta_table(warehouse / path):
            merged = merge_small_files(warehouse / path, plan.name, clock_ms, closed_before)
            if merged.merged_files:
                yield path, merged


def remove_unneeded_files(
    warehouse: StoragePath, folders: list[Path], retention_ms: int, now_ms: int, *, dry_run: bool
) -> Iterator[tuple[str, int]]:
    """Remove files that no journal and no table version within the retention uses; yields their number by table.

    This includes files of a host that was fenced or killed while it wrote.
    """
    needed_files = {name for folder in folders for name in _list_named_files(folder)}
    yield from _remove_staged_files(warehouse, needed_files, now_ms - retention_ms, dry_run)
    for table in list_warehouse_tables(warehouse):
        removed_files = remove_unreferenced_files(
            warehouse / table, retention_ms // MS_PER_HOUR, needed_files, dry_run=dry_run
        )
        if removed_files:
            yield table, len(removed_files)


def _remove_staged_files(
    warehouse: StoragePath, needed_files: Collection[str], before_ms: int, dry_run: bool
) -> Iterator[tuple[str, int]]:
    """Remove files of rows that no batch will commit; a commit removes its own files immediately."""
    for folder in STAGING_FOLDERS:
        for staging_path in list_children(warehouse / folder):
            old_files = [file for file, written_ms in list_files(staging_path) if written_ms < before_ms]
            unneeded = [
                file for file in old_files if file.name.endswith(".parquet") and file.name not in needed_files
            ]
            for file in () if dry_run else unneeded:
                file.unlink(missing_ok=True)
            if unneeded:
                yield f"{folder}/{staging_path.name}", len(unneeded)


def _list_mergeable_tables(plan: Plan, last_outcome: BatchOutcome) -> Iterator[tuple[str, datetime | None]]:
    """Yield the tables to merge; for tables of newest values, also the time before which windows are closed."""
    for stage in plan.stages:
        for sink in stage.sinks:
            if sink.file_merging is FileMerging.ALL:
                yield sink.path, None
            elif (
                sink.file_merging is FileMerging.CLOSED_WINDOWS
                and last_outcome.watermark.is_finite
                and _has_final_windows(stage)
            ):
                closed_before_s = (last_outcome.watermark.value - stage.lateness) / 1000
                yield sink.path, datetime.fromtimestamp(closed_before_s, UTC)
    record_paths = [
        *(path for path in list_owned_paths(plan) if path not in list_result_paths(plan)),
        *list_quarantine_paths(plan),
    ]
    yield from ((path, None) for path in record_paths)


def _has_final_windows(stage: Stage) -> bool:
    """Return whether rows of a closed window never change; a session may still be merged into another."""
    return stage.window.has_fixed_bounds and not stage.window.uses_processing_time


def _list_named_files(folder: Path) -> Iterator[str]:
    """Yield the files that the outcomes of a stream name for its tables."""
    for outcome in read_retained_outcomes(folder / "journal"):
        for change in outcome.changes.values():
            yield from (Path(file.path).name for file in change.adds)
