"""Streams on hold: their desired state is restored, also after interruptions."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest
from tests.patience import PATIENCE_S

from penstock.core.clock import now_ms
from penstock.core.waiting import wait_until
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.host.control import DesiredRunState, Lease
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.operators.watermark import Watermark
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.reports import read_batch_history
from penstock.platform.errors import StackError
from penstock.platform.services.stream_hold import StreamHold, hold_stream, read_hold
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, request_state

STREAM = "sensor_minute"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{home}/control.db")
    opened.set_desired_state(STREAM, DesiredRunState.PAUSED, now_ms())
    yield opened
    opened.close()


def read_desired(store: ControlStore) -> DesiredRunState:
    return store.read_desired_states()[STREAM].desired


def find_hold(home: Path, store: ControlStore) -> StreamHold | None:
    return read_hold(home / "streams", STREAM, store.read_desired_states()[STREAM])


def run_killed_hold(home: Path) -> None:
    """Run a process that puts the stream on hold and is killed."""
    script = f"""
import os, signal
from pathlib import Path
from penstock.platform.control import open_control_store
from penstock.platform.services.stream_hold import hold_stream
store = open_control_store("sqlite:///{home}/control.db")
with hold_stream(store, Path("{home}/streams"), "{STREAM}", "an upgrade", print):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    result = subprocess.run([sys.executable, "-c", script], check=False, env=os.environ)
    assert result.returncode == -signal.SIGKILL


def hold_once(home: Path, store: ControlStore) -> None:
    with hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None) as fence:
        assert read_desired(store) is DesiredRunState.DRAINED
        assert fence.is_held()


def test_the_desired_state_is_restored(home: Path, store: ControlStore) -> None:
    hold_once(home, store)
    assert (read_desired(store), find_hold(home, store)) == (DesiredRunState.PAUSED, None)


def test_a_killed_hold_is_restored_by_the_next_one(home: Path, store: ControlStore) -> None:
    run_killed_hold(home)
    assert read_desired(store) is DesiredRunState.DRAINED
    assert find_hold(home, store) == StreamHold(DesiredRunState.PAUSED, "an upgrade", 2)
    run_killed_hold(home)
    hold_once(home, store)
    assert (read_desired(store), find_hold(home, store)) == (DesiredRunState.PAUSED, None)


def test_a_failed_hold_restores_the_desired_state(home: Path, store: ControlStore) -> None:
    with (
        pytest.raises(OSError, match="disk full"),
        hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None),
    ):
        raise OSError("disk full")
    assert (read_desired(store), find_hold(home, store)) == (DesiredRunState.PAUSED, None)


def test_a_later_request_replaces_the_state_before_the_hold(home: Path, store: ControlStore) -> None:
    run_killed_hold(home)
    store.set_desired_state(STREAM, DesiredRunState.STOPPED, now_ms())
    assert find_hold(home, store) is None
    still_stopped = hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None)
    with still_stopped:
        pass
    assert read_desired(store) is DesiredRunState.STOPPED


@pytest.mark.parametrize("command", ["drain", "stop", "start", "resume"])
def test_a_request_during_a_hold_applies_afterwards(home: Path, store: ControlStore, command: str) -> None:
    with hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None):
        request = request_state(store, STREAM, STREAM_COMMANDS[command], (STREAM,))
        assert find_hold(home, store) is None, "the hold is over for `penstock status`"
    assert store.read_desired_states()[STREAM] == request.desired_state


def test_a_second_hold_is_refused(home: Path, store: ControlStore) -> None:
    with hold_stream(store, home / "streams", STREAM, "an erasure", lambda _: None):
        with pytest.raises(StackError, match="is leased to an erasure, but an upgrade needs the lease"):
            hold_once(home, store)
        assert find_hold(home, store) == StreamHold(DesiredRunState.PAUSED, "an erasure", 2)
    assert (read_desired(store), find_hold(home, store)) == (DesiredRunState.PAUSED, None)


def test_a_request_at_the_start_of_a_hold_wins(home: Path, store: ControlStore) -> None:
    def request_stop(step: str) -> None:
        assert step == "draining the stream"
        request_state(store, STREAM, STREAM_COMMANDS["stop"], (STREAM,))

    with (
        pytest.raises(
            StackError, match="another state of sensor_minute was requested while an upgrade was about to"
        ),
        hold_stream(store, home / "streams", STREAM, "an upgrade", request_stop),
    ):
        pass
    assert read_desired(store) is DesiredRunState.STOPPED


def test_a_short_outage_of_the_store_does_not_lose_the_lease(
    home: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.platform.services.stream_hold.LEASE_TTL_MS", 1_500)
    renew, tries = store.renew_lease, Queue[str]()

    def fail_first_renewal(lease: Lease, now: int, ttl_ms: int) -> bool:
        tries.put("renewal")
        if tries.qsize() == 1:
            raise OSError("the store is unavailable")
        return renew(lease, now, 3_600_000)

    monkeypatch.setattr(store, "renew_lease", fail_first_renewal)
    with hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None):
        wait_until(lambda: tries.qsize() >= 3, PATIENCE_S, "the lease to be renewed")
        assert store.read_lease(STREAM).expires_at_ms > now_ms() + 3_000_000


def test_unreported_batches_are_reported_first(home: Path, store: ControlStore) -> None:
    journal = BatchJournal.open_for_writing(home / "streams" / STREAM / "journal")
    outcomes = [BatchOutcome(number, "data", 0, 1, None, Watermark(), {}, {}, {}) for number in range(4)]
    for outcome in outcomes:
        journal.commit_outcome(outcome)
    store.record_batch(to_batch_record(STREAM, outcomes[1]))
    hold_once(home, store)
    assert [record.batch_id for record in read_batch_history(store, STREAM)] == [1, 2, 3]


def test_status_shows_an_interrupted_hold(home: Path, store: ControlStore) -> None:
    run_killed_hold(home)
    store.release_lease(store.read_lease(STREAM))
    command = [sys.executable, "-m", "penstock.platform.cli", "status", "--json"]
    shown = subprocess.run(command, check=False, env=os.environ, capture_output=True, text=True)
    (stream,) = json.loads(shown.stdout)["streams"]
    note = "on hold since an upgrade was interrupted; desired before: paused. Repeat it, or run "
    command_hint = "`penstock stream pause sensor_minute`"
    assert (stream["healthy"], stream["note"]) == (False, note + command_hint)
