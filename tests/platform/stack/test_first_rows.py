"""The wait for first rows after a start, and the hosts that are shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.platform.definitions.conftest import build_batch

from penstock.core.clock import now_ms
from penstock.engine.host.control import DesiredRunState, HostReport, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.stack.first_rows import wait_for_first_rows
from penstock.platform.stack.stack_view import HOST_TIMEOUT_MS, filter_live_hosts

LONG_TIMEOUT_S = 3600.0
"""Longer than any test: a call that returns did not wait."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{tmp_path}/control.db")
    for stream in ("one", "other"):
        opened.set_desired_state(stream, DesiredRunState.RUNNING, now_ms())
    yield opened
    opened.close()


def report_running(store: ControlStore, stream: str) -> None:
    assert store.acquire_lease(stream, "host", now_ms(), 3_600_000)
    store.report_health(StreamHealth(stream, StreamState.RUNNING, "", now_ms()))


def test_earlier_rows_do_not_count_until_the_stream_runs(store: ControlStore) -> None:
    store.record_batch(build_batch(0, "one"))
    assert wait_for_first_rows(store, ["one"], 0.0) == ("one",)
    report_running(store, "one")
    report_running(store, "other")
    assert wait_for_first_rows(store, ["one"], LONG_TIMEOUT_S) == ()


def test_a_running_stream_is_awaited_until_it_has_rows(store: ControlStore) -> None:
    report_running(store, "one")
    report_running(store, "other")
    assert wait_for_first_rows(store, ["one"], 0.0) == ("one",)


def test_a_failed_or_paused_stream_is_not_awaited(store: ControlStore) -> None:
    store.report_health(StreamHealth("one", StreamState.FAILED, "its file is broken", now_ms()))
    store.set_desired_state("other", DesiredRunState.PAUSED, now_ms())
    assert wait_for_first_rows(store, ["one", "other"], LONG_TIMEOUT_S) == ("one",)


def test_the_newest_host_of_an_address_is_shown() -> None:
    def host(name: str, started_at: int, seen_at: int, port: int = 9464) -> HostReport:
        return HostReport(name, f"127.0.0.1:{port}", started_at, seen_at)

    now = 10 * HOST_TIMEOUT_MS
    first, newest = host("here-1a", 1, now), host("here-2b", 2, now)
    other_port, other_machine = host("here-3c", 1, now, 9465), host("there-4d", 1, now)
    silent = host("gone-5e", 3, now - HOST_TIMEOUT_MS)
    live_hosts = filter_live_hosts([newest, first, other_port, other_machine, silent], now)
    assert sorted(live_host.host for live_host in live_hosts) == ["here-2b", "here-3c", "there-4d"]
