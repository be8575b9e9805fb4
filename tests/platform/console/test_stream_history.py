"""Replays and upgrades from the page of a stream: planned first, confirmed, and run in a process of their own."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from starlette.testclient import TestClient
from tests.patience import PATIENCE_S
from tests.platform.console.conftest import NOW_MS, PageReader, open_client, start_stream

from penstock.core.waiting import wait_until
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.operators.watermark import Watermark
from penstock.engine.upgrade.stored_plan import store_plan
from penstock.platform.console.application import build_context
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.history_runs import HistoryRun
from penstock.platform.console.history_worker import UpgradeOrder
from penstock.platform.control import ControlStore
from penstock.platform.services.operator_actions import OperatorAction, read_actions
from penstock.platform.services.stream_catalog import load_plan
from penstock.platform.settings import Settings

STREAM = "sensor_minute"
REPLAY, UPGRADE = f"/streams/{STREAM}/replay", f"/streams/{STREAM}/upgrade"


@pytest.fixture
def context(settings: Settings, store: ControlStore) -> Iterator[ConsoleContext]:
    built = build_context(settings, store, lambda: NOW_MS)
    start_stream(store, STREAM)
    yield built
    built.history.close()


def store_state(settings: Settings, *, lateness_change_ms: int) -> None:
    """Give the stream a state that was made with another allowed lateness."""
    folder = settings.home / "streams" / STREAM
    BatchJournal.open_for_writing(folder / "journal").commit_outcome(
        BatchOutcome(0, "data", 0, 1, None, Watermark(), {}, {}, {})
    )
    plan = load_plan(STREAM)
    stages = tuple(replace(stage, lateness=stage.lateness + lateness_change_ms) for stage in plan.stages)
    store_plan(folder, replace(plan, stages=stages))


def find_fields(page: str) -> dict[str, str]:
    """Return the hidden fields of a page."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))


def list_actions(settings: Settings) -> list[OperatorAction]:
    return list(read_actions(settings.home))


def wait_for_end(context: ConsoleContext) -> HistoryRun:
    """Return the run of the stream once its process has ended."""
    run = context.history.find(STREAM)
    assert run is not None
    wait_until(lambda: run.exit_code is not None, PATIENCE_S, "the run to end")
    return run


def test_a_replay_is_shown_before_it_starts(read_page: PageReader) -> None:
    page = read_page(REPLAY, **{"from": "time:2026-01-31T12:00", "results": "switch", "drop_earlier": "yes"})
    assert "time:2026-01-31T12:00" in page
    assert "Results of records before the start, or that the contract no longer reads, are lost" in page
    assert find_fields(page)["confirmed"] == "yes"
    beside = read_page(REPLAY, results="beside")
    assert "The stream is not affected" in beside
    assert "confirmed" not in read_page(REPLAY)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"from": "yesterday"}, "is not a valid start"),
        ({"name": "../x"}, "name"),
        ({"without": "sensors:0:1"}, "is not the address of a record"),
        ({"without": "other/0@1"}, "does not read other"),
    ],
)
def test_what_is_wrong_with_a_replay_is_said_before_it_starts(
    read_page: PageReader, fields: dict[str, str], problem: str
) -> None:
    page = read_page(REPLAY, **fields)
    assert re.search(rf'<p class="banner wrap" role="alert">[^<]*{problem}', page)
    assert "confirmed" not in page


def test_an_unconfirmed_replay_leads_to_its_plan(
    context: ConsoleContext, client: TestClient, settings: Settings
) -> None:
    token = find_fields(client.get(f"/streams/{STREAM}").text)["token"]
    answer = client.post(REPLAY, data={"token": token, "from": "archive", "results": "switch"})
    assert (answer.status_code, answer.headers["location"].partition("?")[2]) == (
        303,
        "from=archive&results=switch",
    )
    assert context.history.find(STREAM) is None
    assert list_actions(settings) == []


def test_a_replay_runs_in_its_own_process_and_says_why_it_failed(
    context: ConsoleContext, client: TestClient, settings: Settings
) -> None:
    """A replay of this name is refused before Spark starts, because another run has results there."""
    write_deltalake(
        settings.home / "warehouse/runs" / STREAM / "mine/latest" / STREAM, pa.table({"x": pa.array([1])})
    )
    fields = find_fields(client.get(REPLAY, params={"results": "beside", "name": "mine"}).text)
    assert client.post(REPLAY, data=fields).headers["location"] == f"/streams/{STREAM}"
    second = client.post(REPLAY, data=fields)
    assert second.status_code == 409
    assert "A replay of sensor_minute is running" in second.text
    run = wait_for_end(context)
    assert (run.state, run.exit_code) == ("failed", 2)
    assert run.newest_lines[-1].startswith(f"runs/{STREAM}/mine already has results of another run")
    (action,) = list_actions(settings)
    assert (action.action, action.target, action.origin) == ("stream replay", STREAM, "console")
    assert action.details == {"from": "topic", "beside": True}
    page = client.get(f"/streams/{STREAM}").text
    assert "already has results of another run" in page


def test_an_upgrade_is_planned_confirmed_and_done(
    context: ConsoleContext, client: TestClient, settings: Settings, store: ControlStore
) -> None:
    store_state(settings, lateness_change_ms=60_000)
    page = client.get(UPGRADE).text
    assert "the state stays, and the new definition applies from the next batch on" in page
    assert list_actions(settings) == []
    assert client.post(UPGRADE, data=find_fields(page)).headers["location"] == f"/streams/{STREAM}"
    run = context.history.find(STREAM)
    assert run is not None
    wait_until(lambda: store.read_desired_states()[STREAM].revision == 2, PATIENCE_S, "the stream to restart")
    assert run.newest_lines == ["restarting the stream"]
    (action,) = list_actions(settings)
    assert (action.action, action.details) == ("stream upgrade", {"class": "COMPATIBLE"})


def test_a_run_that_is_done_says_its_result(
    context: ConsoleContext, client: TestClient, settings: Settings
) -> None:
    store_state(settings, lateness_change_ms=0)
    context.history.start(UpgradeOrder(STREAM, (), "topic", "same"), "alice")
    run = wait_for_end(context)
    assert (run.state, run.newest_lines) == ("done", ["same: nothing changed"])
    page = client.get(f"/streams/{STREAM}").text
    assert "by alice" in page
    assert "same: nothing changed" in page


def test_an_upgrade_that_has_changed_is_shown_again(
    context: ConsoleContext, client: TestClient, settings: Settings
) -> None:
    store_state(settings, lateness_change_ms=60_000)
    fields = find_fields(client.get(UPGRADE).text)
    store_plan(settings.home / "streams" / STREAM, load_plan(STREAM))
    answer = client.post(UPGRADE, data=fields)
    assert "changed=yes" in answer.headers["location"]
    assert "The plan has changed since you were asked" in client.get(answer.headers["location"]).text
    assert context.history.find(STREAM) is None


def test_without_a_state_there_is_nothing_to_upgrade(read_page: PageReader) -> None:
    page = read_page(UPGRADE)
    assert "Nothing to upgrade" in page
    assert "confirmed" not in page


def test_an_unknown_column_is_named(settings: Settings, read_page: PageReader) -> None:
    store_state(settings, lateness_change_ms=60_000)
    assert "there is no column of sensor_minute &#39;warmest&#39;" in read_page(UPGRADE, from_now="warmest")


@pytest.mark.parametrize("path", [REPLAY, UPGRADE])
def test_a_viewer_may_plan_and_not_start(settings: Settings, store: ControlStore, path: str) -> None:
    console = settings.console.model_copy(update={"role": "viewer"})
    viewer = open_client(
        build_context(settings.model_copy(update={"console": console}), store, lambda: NOW_MS)
    )
    store_state(settings, lateness_change_ms=60_000)
    assert 'method="post"' not in viewer.get(path, params={"results": "beside"}).text
    assert viewer.post(path, data={"confirmed": "yes"}).status_code == 403


@pytest.mark.parametrize("path", [REPLAY, UPGRADE])
def test_a_start_without_the_token_of_the_page_is_refused(
    context: ConsoleContext, client: TestClient, path: str
) -> None:
    client.get(path)
    assert client.post(path, data={"token": "0" * 64, "confirmed": "yes"}).status_code == 403
    assert context.history.find(STREAM) is None


@pytest.mark.parametrize("page", ["replay", "upgrade"])
def test_a_stream_without_a_pipeline_has_no_history_to_run(client: TestClient, page: str) -> None:
    assert client.get(f"/streams/archive-sensors/{page}").status_code == 404
