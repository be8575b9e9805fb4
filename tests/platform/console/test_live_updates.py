"""Live updates: the address of a page also yields the blocks that changed, until the console stops."""

import json
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest
from tests.patience import PATIENCE_S
from tests.platform.console.conftest import NOW_MS, record_batch, start_stream

from penstock.core.http.server import HttpServer
from penstock.platform.console.application import build_console, build_context
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.control import ControlStore
from penstock.platform.settings import Settings


class SteppingClock:
    """A clock that goes on by two seconds at each look, so that each reading is new."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        self.now_ms += 2_000
        return self.now_ms


@pytest.fixture
def context(settings: Settings, store: ControlStore) -> ConsoleContext:
    return build_context(settings, store, SteppingClock())


@pytest.fixture
def server(context: ConsoleContext) -> Iterator[HttpServer]:
    started = HttpServer(build_console(context), "127.0.0.1", 0, name="console")
    started.start()
    yield started
    context.stopping.set()
    started.stop()


def open_events(server: HttpServer, path: str) -> HTTPResponse:
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}{path}", headers={"Accept": "text/event-stream"}
    )
    answer: HTTPResponse = urllib.request.urlopen(request, timeout=PATIENCE_S)
    return answer


def read_event(events: HTTPResponse) -> dict[str, Any]:
    """Return the next event with data."""
    for line in events:
        if line.startswith(b"data: "):
            found: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
            return found
    raise AssertionError("the events have ended")


def test_the_first_event_has_every_block_and_the_next_what_changed(
    server: HttpServer, store: ControlStore
) -> None:
    start_stream(store, "sensor_minute")
    with open_events(server, "/") as events:
        blocks = ["live_graph", "live_problems", "live_programs", "live_streams", "live_totals"]
        assert sorted(read_event(events)) == blocks
        record_batch(store, "sensor_minute", 0, 0)
        changed = read_event(events)
        assert "live_programs" not in changed
        assert "4,321" in changed["live_streams"]


def test_a_search_is_part_of_the_updates(server: HttpServer, store: ControlStore) -> None:
    start_stream(store, "sensor_minute")
    start_stream(store, "word_count")
    with open_events(server, "/?q=word") as events:
        streams = read_event(events)["live_streams"]
    assert "word_count" in streams
    assert "sensor_minute" not in streams


def test_open_pages_do_not_keep_the_console_from_stopping(
    context: ConsoleContext, server: HttpServer
) -> None:
    with open_events(server, "/") as events:
        read_event(events)
        context.stopping.set()
        server.stop()
        assert not server.is_serving
