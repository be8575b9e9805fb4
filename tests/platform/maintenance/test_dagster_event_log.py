"""Old events, check results and runs that maintenance removes from Dagster."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    job,
    op,
)
from sqlalchemy import Engine, event

from penstock.platform.maintenance.dagster_event_log import prune_checks, prune_events, prune_runs

LATER = datetime.now(UTC) + timedelta(days=1)


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
