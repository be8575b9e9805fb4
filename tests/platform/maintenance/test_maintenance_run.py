"""What maintenance removes from the control store, Dagster and the folders of streams."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from dagster import (
    DagsterInstance,
    build_schedule_context,
)
from deltalake import write_deltalake

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.operators.watermark import Watermark
from penstock.engine.stream_folders import finish_switch, resolve_stream_folder, start_switch
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.platform.control import ControlStore
from penstock.platform.definitions.maintenance_job import build_maintenance_definitions
from penstock.platform.maintenance import MaintenanceAction, run_maintenance
from penstock.platform.maintenance.replay_leftovers import remove_old_folders
from penstock.platform.maintenance.table_upkeep import remove_unneeded_files
from penstock.platform.settings import load_settings

DAY_MS = 86_400_000
LATER = datetime.now(UTC) + timedelta(days=1)


def test_leftovers_of_a_replay_are_removed_after_their_retention(tmp_path: Path) -> None:
    old = tmp_path / "s"
    for folder in (old, old / "first", old / "second", old / "third"):
        (folder / "journal").mkdir(parents=True)
        (folder / "journal" / "000.outcome.json").write_text("{}")
    for name in ("checkpoint.3", "checkpoints"):
        (old / name).mkdir()
    finish_switch(tmp_path, "s", "second")
    in_ten_days = round(datetime.now(UTC).timestamp() * 1000) + 10 * DAY_MS
    assert list(remove_old_folders(tmp_path, 20 * DAY_MS, in_ten_days, dry_run=False)) == []
    start_switch(tmp_path, "s", "third")
    assert list(remove_old_folders(tmp_path, 7 * DAY_MS, in_ten_days, dry_run=False)) == [], (
        "a switch is in progress"
    )
    finish_switch(tmp_path, "s", "third")
    removed = sorted(
        path.name for path in remove_old_folders(tmp_path, 7 * DAY_MS, in_ten_days, dry_run=False)
    )
    assert removed == ["checkpoint.3", "first", "journal", "second"]
    assert resolve_stream_folder(tmp_path, "s") == old / "third"
    assert (old / "third" / "journal").exists()


def test_results_of_an_abandoned_replay_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: ControlStore
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    for folder in ("streams/s", "streams/s/cut-off", "streams/s/mine", "runs/s/mine", "runs/s/2026-01-31"):
        (home / folder / "journal").mkdir(parents=True)
    for name in ("cut-off", "mine", "2026-01-31"):
        write_deltalake(home / "warehouse/runs/s" / name / "latest/s", pa.table({"x": [1]}))

    def run_maintenance_after(days: int, *, dry_run: bool = False) -> list[str]:
        now_ms = round(datetime.now(UTC).timestamp() * 1000) + days * DAY_MS
        actions = run_maintenance(load_settings().settings, store, None, now_ms, dry_run=dry_run)
        return [action.target for action in actions if action.action == "replay leftovers removed"]

    leftovers = ["s/cut-off", "runs/s/cut-off", "s/mine"]
    assert run_maintenance_after(2) == [], "it may still be completed"
    assert run_maintenance_after(10, dry_run=True) == leftovers
    assert run_maintenance_after(10) == leftovers
    assert run_maintenance_after(10) == []
    assert (home / "streams/s/journal").exists()
    results = sorted(path.name for path in (home / "warehouse/runs/s").iterdir())
    assert results == ["2026-01-31", "mine"], "results of a named run remain"


def test_uncommitted_rows_of_published_topics_are_removed(tmp_path: Path) -> None:
    topic, journal = tmp_path / "warehouse" / "published" / "t", tmp_path / "s" / "journal"
    for folder in (topic, journal):
        folder.mkdir(parents=True)
    for name in ("lost", "decided"):
        (topic / f"{name}.parquet").touch()
    change = TableChange([DataFile("decided.parquet", 0, 1, "", 0)])
    BatchJournal(journal).commit_outcome(
        BatchOutcome(0, "data", 0, 1, None, Watermark(), {}, {}, {"published/t": change})
    )
    now = round(datetime.now(UTC).timestamp() * 1000)
    args = tmp_path / "warehouse", [tmp_path / "s"], 7 * DAY_MS
    assert list(remove_unneeded_files(*args, now, dry_run=False)) == [], "it may still be committed"
    assert list(remove_unneeded_files(*args, now + 8 * DAY_MS, dry_run=True)) == [("published/t", 1)]
    assert list(remove_unneeded_files(*args, now + 8 * DAY_MS, dry_run=False)) == [("published/t", 1)]
    assert [path.name for path in topic.iterdir()] == ["decided.parquet"]


def test_a_platform_that_never_ran_has_nothing_to_maintain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: ControlStore
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    actions = run_maintenance(load_settings().settings, store, None, 10**13)
    assert [(action.target, action.count) for action in actions] == [
        ("control store", 0),
        ("control store", 0),
    ]
    assert not (tmp_path / "home").exists()


def test_the_schedule_runs_the_maintenance_job(tmp_path: Path) -> None:
    dry_runs: list[bool] = []

    def run(
        instance: DagsterInstance, report_check: Callable[[str], None], dry_run: bool
    ) -> list[MaintenanceAction]:
        dry_runs.append(dry_run)
        return [MaintenanceAction("files removed", "latest/s", 3)]

    defs = build_maintenance_definitions(run, "0 3 * * *")
    (schedule,) = defs.schedules or ()
    with build_schedule_context(scheduled_execution_time=LATER) as context:
        (request,) = schedule.evaluate_tick(context).run_requests
    assert defs.resolve_job_def("maintenance").execute_in_process(run_config=request.run_config).success
    assert dry_runs == [False]
