"""What the end of a start waits for, and which hosts are shown then."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.platform.definitions.conftest import batch

from penstock.core.clock import now_ms
from penstock.engine.host.control import DesiredRunState, HostReport, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.stack.first_rows import wait_for_first_rows
from penstock.platform.stack.stack_view import HOST_TIMEOUT_MS, filter_live_hosts

PATIENCE_S = 3600.0
"""Longer than any test may take: what returns has not waited for it."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{tmp_path}/control.db")
    for stream in ("one", "other"):
        opened.set_desired_state(stream, DesiredRunState.RUNNING, now_ms())
    yield opened
    opened.close()


def runs(store: ControlStore, stream: str) -> None:
    assert store.acquire_lease(stream, "host", now_ms(), 3_600_000)
    store.report_health(StreamHealth(stream, StreamState.RUNNING, "", now_ms()))


def test_rows_of_before_are_not_enough_where_the_stream_does_not_run_yet(store: ControlStore) -> None:
    store.record_batch(batch(0, "one"))
    assert wait_for_first_rows(store, ["one"], 0.0) == ("one",)
    runs(store, "one")
    runs(store, "other")
    assert wait_for_first_rows(store, ["one"], PATIENCE_S) == ()


def test_a_stream_that_runs_is_waited_for_until_it_has_rows(store: ControlStore) -> None:
    runs(store, "one")
    runs(store, "other")
    assert wait_for_first_rows(store, ["one"], 0.0) == ("one",)


def test_a_failed_or_stopped_stream_is_not_waited_for(store: ControlStore) -> None:
    store.report_health(StreamHealth("one", StreamState.FAILED, "its file is broken", now_ms()))
    store.set_desired_state("other", DesiredRunState.PAUSED, now_ms())
    assert wait_for_first_rows(store, ["one", "other"], PATIENCE_S) == ("one",)


def test_of_hosts_in_the_same_place_the_youngest_is_shown() -> None:
    def host(name: str, began: int, seen: int, port: int = 9464) -> HostReport:
        return HostReport(name, f"127.0.0.1:{port}", began, seen)

    now = 10 * HOST_TIMEOUT_MS
    killed, young = host("here-1a", 1, now), host("here-2b", 2, now)
    beside, elsewhere = host("here-3c", 1, now, 9465), host("there-4d", 1, now)
    silent = host("gone-5e", 3, now - HOST_TIMEOUT_MS)
    shown = filter_live_hosts([young, killed, beside, elsewhere, silent], now)
    assert sorted(one.host for one in shown) == ["here-2b", "here-3c", "there-4d"]
