"""A console over a control store and tables that a test writes."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.console.application import build_console, build_context
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.settings import Settings, load_settings

NOW_MS = 1_800_000_000_000
LEASE_MS = 600_000


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PENSTOCK_KAFKA__PORT", "1")  # no broker
    return load_settings().settings


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with closing(open_control_store(settings.control_url)) as opened:
        yield opened


@pytest.fixture
def context(settings: Settings, store: ControlStore) -> ConsoleContext:
    return build_context(settings, store, lambda: NOW_MS)


def open_client(context: ConsoleContext) -> TestClient:
    """Return a browser of this machine."""
    return TestClient(build_console(context), base_url="http://127.0.0.1:3030", follow_redirects=False)


@pytest.fixture
def client(context: ConsoleContext) -> TestClient:
    return open_client(context)


def start_stream(store: ControlStore, name: str) -> None:
    """Let a host run a stream."""
    store.set_desired_state(name, DesiredRunState.RUNNING, NOW_MS - 60_000)
    lease = store.acquire_lease(name, "host-a", NOW_MS, LEASE_MS)
    assert lease is not None
    store.report_health(StreamHealth(name, StreamState.RUNNING, "", NOW_MS - 60_000, lease.epoch))


def record_batch(store: ControlStore, name: str, number: int, age_ms: int, **changes: object) -> BatchRecord:
    """Store a batch of a stream that was committed some time ago: 100 records, 7 late, 3 invalid, 2 duplicates."""
    committed_at_ms = NOW_MS - age_ms
    fields = {
        "stream": name,
        "batch_id": number,
        "epoch": 1,
        "kind": "data",
        "clock_ms": committed_at_ms,
        "watermark_ms": committed_at_ms - 10_000,
        "accounts": (PartitionAccount("sensors", 0, 100 * number, 100 * (number + 1), 100, 88, 7, 3, 2),),
        "rows": 12,
        "lag_records": 4_321,
        "durations_ms": {"process": 100.0 + number},
        "state_rows": 1_234,
        "result_rows": {f"latest/{name}": 12},
        "committed_at_ms": committed_at_ms,
    }
    record = BatchRecord(**{**fields, **changes})
    store.record_batch(record)
    return record


PageReader = Callable[..., str]


@pytest.fixture
def read_page(client: TestClient) -> PageReader:
    """Return the text of a page that must be there."""

    def read(path: str, **query: str) -> str:
        answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.text

    return read
