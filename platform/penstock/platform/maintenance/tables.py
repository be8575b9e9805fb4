"""Upkeep of the warehouse: few files of many, and none that nobody needs."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from penstock.pipelines.batch.journal import kept_outcomes
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.plan.sinks import FinalPanes, LatestValues, PaneLog
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.windows import Calendar, Fixed, Sliding, by_processing_time
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import files_in, is_table, places_in, tables_below
from penstock.pipelines.tables.places import own_tables, quarantines, result_of, results
from penstock.pipelines.tables.topic import FOLDER as PUBLISHED
from penstock.pipelines.tables.upkeep import Merged, merge_small_files, remove_unneeded

HOURS = 24
DAY_MS = 86_400_000


def merge_tables(warehouse: Place, plan: Plan, last: Outcome, clock: int) -> Iterator[tuple[str, Merged]]:
    """Merge the small files of a stream's tables; yields what became of each that had enough of them."""
    for path, closed_before in _mergeable(plan, last):
        if is_table(warehouse / path):
            merged = merge_small_files(warehouse / path, plan.name, clock, closed_before)
            if merged.files:
                yield path, merged


def remove_files(
    warehouse: Place, folders: list[Path], days: int, now_ms: int, *, dry_run: bool
) -> Iterator[tuple[str, int]]:
    """Remove files that no version of the last days names and no journal; yields how many of each table or topic.

    Among them are those of a host that was taken over or killed while it wrote: nobody named them.
    """
    needed = {name for folder in folders for name in _named_in(folder)}
    yield from _unpublished(warehouse, needed, now_ms - days * DAY_MS, dry_run)
    for table in tables_below(warehouse):
        removed = remove_unneeded(warehouse / table, days * HOURS, needed, dry_run=dry_run)
        if removed:
            yield table, len(removed)


def _unpublished(
    warehouse: Place, needed: Collection[str], before_ms: int, dry_run: bool
) -> Iterator[tuple[str, int]]:
    """Files of rows for topics that no batch sends: what is sent goes at once."""
    for topic in places_in(warehouse / PUBLISHED):
        old = [file for file, written_ms in files_in(topic) if written_ms < before_ms]
        unneeded = [file for file in old if file.name.endswith(".parquet") and file.name not in needed]
        for file in () if dry_run else unneeded:
            file.unlink(missing_ok=True)
        if unneeded:
            yield f"{PUBLISHED}/{topic.name}", len(unneeded)


def _mergeable(plan: Plan, last: Outcome) -> Iterator[tuple[str, datetime | None]]:
    """Tables whose files may be merged, and for those of newest values up to where their windows are closed."""
    for stage in plan.stages:
        for sink in stage.sinks:
            path = result_of(sink)
            if isinstance(sink, PaneLog | FinalPanes):
                yield path, None
            elif isinstance(sink, LatestValues) and last.watermark.known and _closes_for_good(stage):
                closed = (last.watermark.value - stage.lateness) / 1000
                yield path, datetime.fromtimestamp(closed, UTC)
    records = [*(path for path in own_tables(plan) if path not in results(plan)), *quarantines(plan)]
    yield from ((path, None) for path in records)


def _closes_for_good(stage: Stage) -> bool:
    """Whether no row of a closed window changes any more; that of a swallowed session may, with its owner."""
    window = stage.window
    return isinstance(window, Fixed | Sliding | Calendar) and not by_processing_time(window)


def _named_in(folder: Path) -> Iterator[str]:
    """The files that the outcomes of a stream name for its tables."""
    for outcome in kept_outcomes(folder / "journal"):
        for change in outcome.changes.values():
            yield from (Path(file.path).name for file in change.adds)
