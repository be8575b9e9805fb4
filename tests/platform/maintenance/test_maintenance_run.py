"""What maintenance removes from the control store, Dagster and the folders of streams."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    build_schedule_context,
    job,
    op,
)
from deltalake import write_deltalake
from sqlalchemy import Engine, event

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.host.control import BatchRecord, HostReport
from penstock.engine.operators.watermark import Watermark
from penstock.engine.stream_folders import finish_switch, resolve_stream_folder, start_switch
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.definitions.maintenance_job import build_maintenance_definitions
from penstock.platform.maintenance import MaintenanceAction, run_maintenance
from penstock.platform.maintenance.control_store_rows import prune_batches, prune_hosts
from penstock.platform.maintenance.dagster_event_log import prune_checks, prune_events, prune_runs
from penstock.platform.maintenance.replay_leftovers import remove_old_folders
from penstock.platform.maintenance.table_upkeep import remove_unneeded_files
from penstock.platform.settings import load_settings

DAY_MS = 86_400_000
LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield opened
    opened.close()


def test_old_batches_are_pruned_except_the_newest_of_each_stream(store: ControlStore) -> None:
    sample = BatchRecord("s", 0, 1, "tick", 0, None, ())
    for number in range(10):
        store.record_batch(replace(sample, batch_id=number, clock_ms=number))
    store.record_batch(replace(sample, stream="silent"))
    assert prune_batches(store, 5, dry_run=True) == 5
    assert prune_batches(store, 5, dry_run=False) == 5
    assert prune_batches(store, 100, dry_run=False) == 4
    assert store.read_last_batch("s").batch_id == 9
    assert store.read_last_batch("silent").batch_id == 0


def test_batches_are_pruned_in_short_transactions(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.platform.maintenance.control_store_rows.ROWS_PER_TRANSACTION", 3)
    sample = BatchRecord("s", 0, 1, "tick", 0, None, ())
    for number in (*range(8), 1_000, 1_001, *range(2_000, 2_020)):
        store.record_batch(replace(sample, batch_id=number, clock_ms=number))
    removed: list[int] = []

    def count_removed(_connection: object, cursor: sqlite3.Cursor, statement: str, *_: object) -> None:
        if statement.startswith("DELETE"):
            removed.append(cursor.rowcount)

    event.listen(store.engine, "after_cursor_execute", count_removed)
    assert prune_batches(store, 1_001, dry_run=True) == 9
    assert prune_batches(store, 1_001, dry_run=False) == 9
    assert removed == [3, 3, 3, 0], "newer rows are not read"


def test_silent_hosts_are_pruned(store: ControlStore) -> None:
    store.report_host(HostReport("old", "127.0.0.1:1", 0, 10))
    store.report_host(HostReport("new", "127.0.0.1:2", 0, 10))
    store.report_host(HostReport("new", "127.0.0.1:2", 0, 30))
    assert prune_hosts(store, 20, dry_run=False) == 1
    assert [host.host for host in store.read_hosts()] == ["new"]


def test_old_asset_events_are_pruned_except_the_newest(tmp_path: Path) -> None:
    key = AssetKey(["streams", "s"])
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for number in range(30):
            instance.report_runless_asset_event(AssetMaterialization(key, metadata={"batch": number}))
        assert prune_events(instance, LATER - timedelta(days=2), dry_run=False) == 0
        assert prune_events(instance, LATER, dry_run=True) == 29
        assert prune_events(instance, LATER, dry_run=False) == 29
        newest = instance.get_latest_materialization_event(key)
        assert newest is not None
        assert newest.asset_materialization.metadata["batch"].value == 29
        instance.report_runless_asset_event(AssetMaterialization(key, metadata={"batch": 30}))
        assert len(instance.fetch_materializations(key, limit=100).records) == 2


def test_runless_events_are_pruned_from_both_copies_in_sqlite(tmp_path: Path) -> None:
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for number in range(30):
            instance.report_runless_asset_event(AssetMaterialization("s", metadata={"batch": number}))
        (copies,) = tmp_path.rglob(".db")
        with closing(sqlite3.connect(copies)) as connection:
            count = lambda: connection.execute("SELECT count(*) FROM event_logs").fetchone()  # noqa: E731
            assert count() == (30,)
            prune_events(instance, LATER, dry_run=True)
            prune_events(instance, LATER - timedelta(days=2), dry_run=False)
            assert count() == (30,)
            prune_events(instance, LATER, dry_run=False)
            assert count() == (0,)


def test_events_are_pruned_in_short_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.platform.maintenance.dagster_event_log.ROWS_PER_TRANSACTION", 10)
    removed = [0]

    def count_removed(_connection: object, cursor: sqlite3.Cursor, statement: str, *_: object) -> None:
        if statement.startswith("DELETE FROM event_logs"):
            removed[-1] += cursor.rowcount

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for number in range(31):
            instance.report_runless_asset_event(AssetMaterialization("s", metadata={"batch": number}))
        event.listen(Engine, "after_cursor_execute", count_removed)
        event.listen(Engine, "commit", committed := lambda _connection: removed.append(0))
        try:
            assert prune_events(instance, LATER, dry_run=False) == 30
        finally:
            event.remove(Engine, "after_cursor_execute", count_removed)
            event.remove(Engine, "commit", committed)
    assert [rows for rows in removed if rows] == [10, 10, 10, 10, 10, 10, 1], "the index, and the second copy"


def test_old_check_results_are_pruned_except_the_newest(tmp_path: Path) -> None:
    lag, age = (AssetCheckKey(AssetKey("s"), name) for name in ("lag", "age"))
    with DagsterInstance.local_temp(str(tmp_path)) as instance:

        def report_check(key: AssetCheckKey, number: int, passed: bool) -> None:
            evaluation = AssetCheckEvaluation(key.asset_key, key.name, passed, metadata={"number": number})
            instance.report_runless_asset_event(evaluation)

        def history(key: AssetCheckKey) -> list[int]:
            records = instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
            return [record.evaluation.metadata["number"].value for record in records]

        for number in range(20):
            report_check(lag, number, passed=True)
        report_check(age, 0, passed=False)
        report_check(age, 1, passed=True)
        assert prune_checks(instance, LATER - timedelta(days=2), dry_run=False) == 0
        assert prune_checks(instance, LATER, dry_run=True) == 19
        assert prune_checks(instance, LATER, dry_run=False) == 19
        assert (history(lag), history(age)) == ([19], [1, 0])


def test_finished_runs_are_pruned_with_their_files(tmp_path: Path) -> None:
    @op
    def nothing() -> None:
        """Print something."""
        print("nothing")

    @job
    def idle() -> None:
        nothing()

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        run = idle.execute_in_process(instance=instance).run_id
        assert [path.name for path in tmp_path.rglob(f"{run}*")] != []
        assert prune_runs(instance, LATER, dry_run=True) == 1
        assert prune_runs(instance, LATER, dry_run=False) == 1
        assert instance.get_runs_count() == 0
        assert [path.name for path in tmp_path.rglob(f"{run}*")] == []


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
