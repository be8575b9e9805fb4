"""One round of maintenance. Each part can be done again, at any time, beside streams that run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.host.folders import folder_of_stream
from penstock.pipelines.store import Place
from penstock.platform.control import ControlStore
from penstock.platform.maintenance.generations import remove_old, stream_folders, tables_left
from penstock.platform.maintenance.store import forget_batches, forget_hosts
from penstock.platform.maintenance.tables import merge_tables, remove_files
from penstock.platform.settings import Settings
from penstock.platform.streams import sound_plans

if TYPE_CHECKING:
    from dagster import DagsterInstance

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Done:
    """What was done to what, and to how many of it."""

    what: str
    where: str
    count: int


def maintain(
    settings: Settings,
    store: ControlStore,
    instance: "DagsterInstance | None",
    now_ms: int,
    tell: Callable[[str], None] = lambda _: None,
    *,
    dry_run: bool = False,
) -> list[Done]:
    """Do one round; with `dry_run` say what it would remove, and merge nothing."""
    found: list[Done] = []
    for done in _round(settings, store, instance, now_ms, dry_run):
        tell(f"{done.where}: {done.what} {done.count}")
        found.append(done)
    return found


def _round(
    settings: Settings, store: ControlStore, instance: "DagsterInstance | None", now_ms: int, dry_run: bool
) -> Iterator[Done]:
    keep, streams, warehouse = settings.maintenance, settings.home / "streams", settings.tables
    if not dry_run:
        yield from _merged(streams, warehouse, now_ms)
    for table, count in remove_files(
        warehouse, stream_folders(streams), keep.files_days, now_ms, dry_run=dry_run
    ):
        yield Done("files removed", table, count)
    for path in remove_old(streams, keep.files_days, now_ms, dry_run=dry_run):
        yield Done("left by a replay, removed", str(path.relative_to(streams)), 1)
        if place := tables_left(settings.home, warehouse, path, dry_run=dry_run):
            yield Done("left by a replay, removed", place, 1)
    rows_before = now_ms - keep.batches_days * DAY_MS
    yield Done("batches forgotten", "control store", forget_batches(store, rows_before, dry_run=dry_run))
    yield Done("hosts forgotten", "control store", forget_hosts(store, now_ms - DAY_MS, dry_run=dry_run))
    if instance is not None:
        from penstock.platform.maintenance.dagster_log import forget_checks, forget_events, forget_runs

        before = datetime.fromtimestamp(now_ms / 1000 - keep.events_days * DAY_MS / 1000, UTC)
        yield Done("events forgotten", "dagster", forget_events(instance, before, dry_run=dry_run))
        yield Done("checks forgotten", "dagster", forget_checks(instance, before, dry_run=dry_run))
        yield Done("runs forgotten", "dagster", forget_runs(instance, before, dry_run=dry_run))


def _merged(streams: Path, warehouse: Place, now_ms: int) -> Iterator[Done]:
    for plan in sound_plans():
        last = Journal(folder_of_stream(streams, plan.name) / "journal").last_outcome()
        if last is not None:
            for table, merged in merge_tables(warehouse, plan, last, now_ms):
                yield Done(f"files merged into {merged.into}", table, merged.files)
