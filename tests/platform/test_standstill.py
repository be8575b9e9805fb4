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

from penstock.infra.waiting import wait_until
from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.host.control import Desired, Lease
from penstock.pipelines.host.telling import batch_record
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.control.reports import history
from penstock.platform.errors import StackError
from penstock.platform.lifecycle import VERBS, ask
from penstock.platform.standstill import Standstill, standing_still, standstill

STREAM = "sensor_minute"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[ControlStore]:
    opened = open_control(f"sqlite:///{home}/control.db")
    opened.desire(STREAM, Desired.PAUSED, now_ms())
    yield opened
    opened.close()


def wanted(store: ControlStore) -> Desired:
    return store.desired()[STREAM].desired


def left(home: Path, store: ControlStore) -> Standstill | None:
    return standstill(home / "streams", STREAM, store.desired()[STREAM])


def killed(home: Path) -> None:
    """A process that holds the stream still, and is killed as it does."""
    script = f"""
import os, signal
from pathlib import Path
from penstock.platform.control import open_control
from penstock.platform.standstill import standing_still
store = open_control("sqlite:///{home}/control.db")
with standing_still(store, Path("{home}/streams"), "{STREAM}", "an upgrade", print):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False, env=os.environ)
    assert ended.returncode == -signal.SIGKILL


def still(home: Path, store: ControlStore) -> None:
    with standing_still(store, home / "streams", STREAM, "an upgrade", lambda _: None) as right:
        assert wanted(store) is Desired.DRAINED
        assert right.holds()


def test_a_stream_is_again_what_it_was(home: Path, store: ControlStore) -> None:
    still(home, store)
    assert (wanted(store), left(home, store)) == (Desired.PAUSED, None)


def test_what_was_killed_leaves_the_wish_to_the_next_try(home: Path, store: ControlStore) -> None:
    killed(home)
    assert wanted(store) is Desired.DRAINED
    assert left(home, store) == Standstill(Desired.PAUSED, "an upgrade", 2)
    killed(home)
    still(home, store)
    assert (wanted(store), left(home, store)) == (Desired.PAUSED, None)


def test_work_that_fails_leaves_nothing_undone(home: Path, store: ControlStore) -> None:
    with (
        pytest.raises(OSError, match="disk full"),
        standing_still(store, home / "streams", STREAM, "an upgrade", lambda _: None),
    ):
        raise OSError("disk full")
    assert (wanted(store), left(home, store)) == (Desired.PAUSED, None)


def test_what_somebody_asked_for_since_holds(home: Path, store: ControlStore) -> None:
    killed(home)
    store.desire(STREAM, Desired.STOPPED, now_ms())
    assert left(home, store) is None
    still_stopped = standing_still(store, home / "streams", STREAM, "an upgrade", lambda _: None)
    with still_stopped:
        pass
    assert wanted(store) is Desired.STOPPED


@pytest.mark.parametrize("word", ["drain", "stop", "start", "resume"])
def test_what_somebody_asks_for_meanwhile_holds_afterwards(
    home: Path, store: ControlStore, word: str
) -> None:
    with standing_still(store, home / "streams", STREAM, "an upgrade", lambda _: None):
        asked = ask(store, STREAM, VERBS[word], (STREAM,))
        assert left(home, store) is None, "and status says so already"
    assert store.desired()[STREAM] == asked.state


def test_a_second_one_is_refused_and_leaves_the_first_as_it_was(home: Path, store: ControlStore) -> None:
    with standing_still(store, home / "streams", STREAM, "an erasure", lambda _: None):
        with pytest.raises(StackError, match="is held by an erasure, and must stand still for an upgrade"):
            still(home, store)
        assert left(home, store) == Standstill(Desired.PAUSED, "an erasure", 2)
    assert (wanted(store), left(home, store)) == (Desired.PAUSED, None)


def test_what_somebody_asks_for_as_it_begins_is_not_overrun(home: Path, store: ControlStore) -> None:
    def ask_at_once(doing: str) -> None:
        assert doing == "draining the stream"
        ask(store, STREAM, VERBS["stop"], (STREAM,))

    with (
        pytest.raises(
            StackError, match="somebody asked something of sensor_minute as an upgrade was about to"
        ),
        standing_still(store, home / "streams", STREAM, "an upgrade", ask_at_once),
    ):
        pass
    assert wanted(store) is Desired.STOPPED


def test_a_store_that_is_away_for_a_moment_costs_nobody_the_lease(
    home: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.platform.standstill.LEASE_MS", 1_500)
    renew, tries = store.renew, Queue[str]()

    def away_at_first(lease: Lease, now: int, ttl_ms: int) -> bool:
        tries.put("once more")
        if tries.qsize() == 1:
            raise OSError("the store is away")
        return renew(lease, now, 3_600_000)

    monkeypatch.setattr(store, "renew", away_at_first)
    with standing_still(store, home / "streams", STREAM, "an upgrade", lambda _: None):
        wait_until(lambda: tries.qsize() >= 3, 30, "it to be renewed")
        assert store.holder(STREAM).expires_at_ms > now_ms() + 3_000_000


def test_batches_that_a_host_could_not_tell_are_told_before_anything_else(
    home: Path, store: ControlStore
) -> None:
    journal = Journal.of_writer(home / "streams" / STREAM / "journal")
    outcomes = [Outcome(number, "data", 0, 1, None, Watermark(), {}, {}, {}) for number in range(4)]
    for outcome in outcomes:
        journal.decide(outcome)
    store.record_batch(batch_record(STREAM, outcomes[1]))
    still(home, store)
    assert [record.batch_id for record in history(store, STREAM)] == [1, 2, 3]


def test_status_says_so(home: Path, store: ControlStore) -> None:
    killed(home)
    store.release(store.holder(STREAM))
    command = [sys.executable, "-m", "penstock.platform.cli", "status", "--json"]
    shown = subprocess.run(command, check=False, env=os.environ, capture_output=True, text=True)
    (stream,) = json.loads(shown.stdout)["streams"]
    told = "stands still since an upgrade was cut off, and was to be paused: do that again, or "
    again = "`penstock stream pause sensor_minute`"
    assert (stream["right"], stream["note"]) == (False, told + again)
