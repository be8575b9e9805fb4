"""What maintenance forgets, and what it leaves: in the control store, in Dagster, and in streams' folders."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    build_schedule_context,
    job,
    op,
)

from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.host.control import BatchRecord, HostReport
from penstock.pipelines.host.folders import begin_switch, end_switch, folder_of_stream
from penstock.pipelines.tables.change import Change, DataFile
from penstock.platform.control import ControlStore, open_control
from penstock.platform.definitions.maintenance import maintenance
from penstock.platform.maintenance import Done, maintain
from penstock.platform.maintenance.dagster_log import forget_events, forget_runs
from penstock.platform.maintenance.generations import remove_old
from penstock.platform.maintenance.store import forget_batches, forget_hosts
from penstock.platform.maintenance.tables import remove_files
from penstock.platform.settings import load_settings

DAY_MS = 86_400_000
LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control(f"sqlite:///{tmp_path}/control.db")
    yield opened
    opened.close()


def test_old_batches_go_and_the_newest_of_each_stream_stays(store: ControlStore) -> None:
    sample = BatchRecord("s", 0, 1, "tick", 0, None, ())
    for number in range(10):
        store.record_batch(replace(sample, batch_id=number, clock_ms=number))
    store.record_batch(replace(sample, stream="silent"))
    assert forget_batches(store, 5, dry_run=True) == 5
    assert forget_batches(store, 5, dry_run=False) == 5
    assert forget_batches(store, 100, dry_run=False) == 4
    assert store.last_batch("s").batch_id == 9
    assert store.last_batch("silent").batch_id == 0


def test_hosts_that_are_silent_go(store: ControlStore) -> None:
    store.report_host(HostReport("old", "127.0.0.1:1", 0, 10))
    store.report_host(HostReport("new", "127.0.0.1:2", 0, 10))
    store.report_host(HostReport("new", "127.0.0.1:2", 0, 30))
    assert forget_hosts(store, 20, dry_run=False) == 1
    assert [host.host for host in store.hosts()] == ["new"]


def test_old_events_of_assets_go_and_the_newest_is_what_it_was(tmp_path: Path) -> None:
    key = AssetKey(["streams", "s"])
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for number in range(30):
            instance.report_runless_asset_event(AssetMaterialization(key, metadata={"batch": number}))
        assert forget_events(instance, LATER - timedelta(days=2), dry_run=False) == 0
        assert forget_events(instance, LATER, dry_run=True) == 29
        assert forget_events(instance, LATER, dry_run=False) == 29
        newest = instance.get_latest_materialization_event(key)
        assert newest is not None
        assert newest.asset_materialization.metadata["batch"].value == 29
        instance.report_runless_asset_event(AssetMaterialization(key, metadata={"batch": 30}))
        assert len(instance.fetch_materializations(key, limit=100).records) == 2


def test_runs_that_are_over_go(tmp_path: Path) -> None:
    @op
    def nothing() -> None:
        """Do nothing."""

    @job
    def idle() -> None:
        nothing()

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert idle.execute_in_process(instance=instance).success
        assert forget_runs(instance, LATER, dry_run=True) == 1
        assert forget_runs(instance, LATER, dry_run=False) == 1
        assert instance.get_runs_count() == 0


def test_what_a_replay_left_goes_after_some_days_and_the_current_folder_never(tmp_path: Path) -> None:
    old = tmp_path / "s"
    for folder in (old, old / "first", old / "second", old / "third"):
        (folder / "journal").mkdir(parents=True)
        (folder / "journal" / "000.outcome.json").write_text("{}")
    end_switch(tmp_path, "s", "second")
    in_ten_days = round(datetime.now(UTC).timestamp() * 1000) + 10 * DAY_MS
    assert list(remove_old(tmp_path, 20, in_ten_days, dry_run=False)) == []
    begin_switch(tmp_path, "s", "third")
    assert list(remove_old(tmp_path, 7, in_ten_days, dry_run=False)) == [], "a switch is not finished"
    end_switch(tmp_path, "s", "third")
    gone = sorted(path.name for path in remove_old(tmp_path, 7, in_ten_days, dry_run=False))
    assert gone == ["first", "journal", "second"]
    assert folder_of_stream(tmp_path, "s") == old / "third"
    assert (old / "third" / "journal").exists()


def test_rows_for_a_topic_that_no_batch_sends_go(tmp_path: Path) -> None:
    topic, journal = tmp_path / "warehouse" / "published" / "t", tmp_path / "s" / "journal"
    for folder in (topic, journal):
        folder.mkdir(parents=True)
    for name in ("lost", "decided"):
        (topic / f"{name}.parquet").touch()
    change = Change([DataFile("decided.parquet", 0, 1, "", 0)])
    Journal(journal).decide(Outcome(0, "data", 0, 1, None, Watermark(), {}, {}, {"published/t": change}))
    now = round(datetime.now(UTC).timestamp() * 1000)
    args = tmp_path / "warehouse", [tmp_path / "s"], 7
    assert list(remove_files(*args, now, dry_run=False)) == [], "it may be decided yet"
    assert list(remove_files(*args, now + 8 * DAY_MS, dry_run=True)) == [("published/t", 1)]
    assert list(remove_files(*args, now + 8 * DAY_MS, dry_run=False)) == [("published/t", 1)]
    assert [path.name for path in topic.iterdir()] == ["decided.parquet"]


def test_a_platform_that_never_ran_has_nothing_to_maintain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: ControlStore
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    done = maintain(load_settings().settings, store, None, 10**13)
    assert [(each.where, each.count) for each in done] == [("control store", 0), ("control store", 0)]
    assert not (tmp_path / "home").exists()


def test_the_schedule_runs_a_job_that_does_a_round(tmp_path: Path) -> None:
    rounds: list[bool] = []

    def run(instance: DagsterInstance, tell: Callable[[str], None], dry_run: bool) -> list[Done]:
        rounds.append(dry_run)
        return [Done("files removed", "latest/s", 3)]

    defs = maintenance(run, "0 3 * * *")
    (schedule,) = defs.schedules or ()
    with build_schedule_context(scheduled_execution_time=LATER) as context:
        (request,) = schedule.evaluate_tick(context).run_requests
    assert defs.resolve_job_def("maintenance").execute_in_process(run_config=request.run_config).success
    assert rounds == [False]
