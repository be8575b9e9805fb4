"""A stream that stood still is again what it was wanted to be, also where that took two tries."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

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


def wanted(store: ControlStore) -> DesiredRunState:
    return store.read_desired_states()[STREAM].desired


def left(home: Path, store: ControlStore) -> StreamHold | None:
    return read_hold(home / "streams", STREAM, store.read_desired_states()[STREAM])


def killed(home: Path) -> None:
    """A process that holds the stream still, and is killed as it does."""
    script = f"""
import os, signal
from pathlib import Path
from penstock.platform.control import open_control_store
from penstock.platform.services.stream_hold import hold_stream
store = open_control_store("sqlite:///{home}/control.db")
with hold_stream(store, Path("{home}/streams"), "{STREAM}", "an upgrade", print):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False, env=os.environ)
    assert ended.returncode == -signal.SIGKILL


def still(home: Path, store: ControlStore) -> None:
    with hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None) as right:
        assert wanted(store) is DesiredRunState.DRAINED
        assert right.is_held()


def test_a_stream_is_again_what_it_was(home: Path, store: ControlStore) -> None:
    still(home, store)
    assert (wanted(store), left(home, store)) == (DesiredRunState.PAUSED, None)


def test_what_was_killed_leaves_the_wish_to_the_next_try(home: Path, store: ControlStore) -> None:
    killed(home)
    assert wanted(store) is DesiredRunState.DRAINED
    assert left(home, store) == StreamHold(DesiredRunState.PAUSED, "an upgrade", 2)
    killed(home)
    still(home, store)
    assert (wanted(store), left(home, store)) == (DesiredRunState.PAUSED, None)


def test_work_that_fails_leaves_nothing_undone(home: Path, store: ControlStore) -> None:
    with (
        pytest.raises(OSError, match="disk full"),
        hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None),
    ):
        raise OSError("disk full")
    assert (wanted(store), left(home, store)) == (DesiredRunState.PAUSED, None)


def test_what_somebody_asked_for_since_holds(home: Path, store: ControlStore) -> None:
    killed(home)
    store.set_desired_state(STREAM, DesiredRunState.STOPPED, now_ms())
    assert left(home, store) is None
    still_stopped = hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None)
    with still_stopped:
        pass
    assert wanted(store) is DesiredRunState.STOPPED


@pytest.mark.parametrize("word", ["drain", "stop", "start", "resume"])
def test_what_somebody_asks_for_meanwhile_holds_afterwards(
    home: Path, store: ControlStore, word: str
) -> None:
    with hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None):
        asked = request_state(store, STREAM, STREAM_COMMANDS[word], (STREAM,))
        assert left(home, store) is None, "and status says so already"
    assert store.read_desired_states()[STREAM] == asked.desired_state


def test_a_second_one_is_refused_and_leaves_the_first_as_it_was(home: Path, store: ControlStore) -> None:
    with hold_stream(store, home / "streams", STREAM, "an erasure", lambda _: None):
        with pytest.raises(StackError, match="is leased to an erasure, but an upgrade needs the lease"):
            still(home, store)
        assert left(home, store) == StreamHold(DesiredRunState.PAUSED, "an erasure", 2)
    assert (wanted(store), left(home, store)) == (DesiredRunState.PAUSED, None)


def test_what_somebody_asks_for_as_it_begins_is_not_overrun(home: Path, store: ControlStore) -> None:
    def ask_at_once(doing: str) -> None:
        assert doing == "draining the stream"
        request_state(store, STREAM, STREAM_COMMANDS["stop"], (STREAM,))

    with (
        pytest.raises(
            StackError, match="another state of sensor_minute was requested while an upgrade was about to"
        ),
        hold_stream(store, home / "streams", STREAM, "an upgrade", ask_at_once),
    ):
        pass
    assert wanted(store) is DesiredRunState.STOPPED


def test_a_store_that_is_away_for_a_moment_costs_nobody_the_lease(
    home: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.platform.services.stream_hold.LEASE_TTL_MS", 1_500)
    renew, tries = store.renew_lease, Queue[str]()

    def away_at_first(lease: Lease, now: int, ttl_ms: int) -> bool:
        tries.put("once more")
        if tries.qsize() == 1:
            raise OSError("the store is away")
        return renew(lease, now, 3_600_000)

    monkeypatch.setattr(store, "renew_lease", away_at_first)
    with hold_stream(store, home / "streams", STREAM, "an upgrade", lambda _: None):
        wait_until(lambda: tries.qsize() >= 3, 30, "it to be renewed")
        assert store.read_lease(STREAM).expires_at_ms > now_ms() + 3_000_000


def test_batches_that_a_host_could_not_tell_are_told_before_anything_else(
    home: Path, store: ControlStore
) -> None:
    journal = BatchJournal.open_for_writing(home / "streams" / STREAM / "journal")
    outcomes = [BatchOutcome(number, "data", 0, 1, None, Watermark(), {}, {}, {}) for number in range(4)]
    for outcome in outcomes:
        journal.commit_outcome(outcome)
    store.record_batch(to_batch_record(STREAM, outcomes[1]))
    still(home, store)
    assert [record.batch_id for record in read_batch_history(store, STREAM)] == [1, 2, 3]


def test_status_says_so(home: Path, store: ControlStore) -> None:
    killed(home)
    store.release_lease(store.read_lease(STREAM))
    command = [sys.executable, "-m", "penstock.platform.cli", "status", "--json"]
    shown = subprocess.run(command, check=False, env=os.environ, capture_output=True, text=True)
    (stream,) = json.loads(shown.stdout)["streams"]
    told = "on hold since an upgrade was interrupted; desired before: paused. Repeat it, or run "
    again = "`penstock stream pause sensor_minute`"
    assert (stream["healthy"], stream["note"]) == (False, told + again)
