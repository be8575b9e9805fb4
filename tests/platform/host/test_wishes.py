"""What a host does about wishes and failures: with a real control store, and streams that only tell."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.pipelines.batch.engine import Right
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.host.control import DesiredState
from penstock.pipelines.host.host import Host
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.errors import StackError
from penstock.platform.lifecycle import VERBS, Asked, ask, is_so, wait_for

STREAM = "s"


@dataclass
class Telling:
    """A stream that tells what it was asked to do; it fails at its start while there are failures left."""

    right: Right
    calls: list[str]
    failures: list[Exception]
    ended: Exception | None = None

    def start(self, *, reading: bool = True) -> None:
        self.calls.append("start" if reading else "start paused")
        if self.failures:
            raise self.failures.pop(0)

    def failure(self) -> BaseException | None:
        return self.ended

    def at(self) -> str:
        return "batch 7, offsets t/0 10 to 20"

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def drain(self) -> None:
        self.calls.append("drain")

    def stop(self) -> None:
        self.calls.append("stop")


@dataclass
class Stage:
    """A host, its store, and a clock for the waits between tries."""

    store: ControlStore
    calls: list[str] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    written: str = "as it was"
    streams: list[Telling] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    ahead_ms: int = 0
    name: str = "host"

    def __post_init__(self) -> None:
        self.host = Host(
            self.name,
            self.store,
            self.make,
            self.clock,
            alive=lambda: True,
            look_every_s=0.01,
            park_after=3,
            written=lambda _: self.written,
        )

    def clock(self) -> int:
        return now_ms() + self.ahead_ms

    def make(self, name: str, right: Right, told: Callable[[Outcome], None]) -> Telling:
        self.meanwhile()
        self.streams.append(Telling(right, self.calls, self.failures))
        return self.streams[-1]

    def wish(self, word: str) -> Asked:
        asked = ask(self.store, STREAM, VERBS[word], (STREAM,))
        self.host.look()
        return asked

    def look_after_the_wait(self) -> None:
        self.ahead_ms += 70_000
        self.host.look()

    def state(self) -> str:
        told = self.store.health(STREAM)
        assert told is not None
        return told.state


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    store = open_control(f"sqlite:///{tmp_path}/control.db")
    yield Stage(store)
    store.close()


def test_a_stream_goes_through_its_life_by_word(stage: Stage) -> None:
    for word, calls in (
        ("start", ["start"]),
        ("start", []),
        ("pause", ["pause"]),
        ("resume", ["resume"]),
        ("restart", ["drain", "start"]),
        ("drain", ["drain"]),
        ("pause", ["start paused"]),
        ("stop", ["stop"]),
    ):
        stage.calls.clear()
        asked = stage.wish(word)
        assert stage.calls == calls, word
        assert is_so(stage.store, asked), word
        assert stage.state() == asked.state.desired


def test_a_restart_is_not_done_before_the_stream_was_begun_anew(stage: Stage) -> None:
    stage.wish("start")
    asked = ask(stage.store, STREAM, VERBS["restart"], (STREAM,))
    assert not is_so(stage.store, asked)
    stage.host.look()
    assert is_so(stage.store, asked)


def test_a_stream_that_keeps_failing_is_parked_with_the_reason_and_the_batch(stage: Stage) -> None:
    stage.failures += [OSError("disk full")] * 5
    stage.wish("start")
    assert stage.state() == "failed"
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    told = stage.store.health(STREAM)
    assert told.state == "parked"
    assert told.reason == (
        "OSError: disk full (batch 7, offsets t/0 10 to 20); given up after 3 tries. "
        "`penstock stream start s` tries again, and so does a change of its files"
    )
    stage.look_after_the_wait()
    assert len(stage.streams) == 3, "a parked stream is left alone"
    assert stage.store.holder(STREAM).expires_at_ms == 0, "and others could have it"


def test_a_parked_stream_is_tried_again_when_somebody_asks(stage: Stage) -> None:
    stage.failures += [OSError("disk full")] * 3
    stage.wish("start")
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    stage.wish("start")
    assert stage.state() == "running"


def test_a_parked_stream_is_tried_again_when_its_files_change_and_only_then(stage: Stage) -> None:
    stage.failures += [DefinitionError("window", "not said", "Say where")] * 2
    stage.wish("start")
    stage.look_after_the_wait()
    assert (stage.state(), len(stage.streams)) == ("parked", 1)
    stage.written = "changed, and wrong in another way"
    stage.host.look()
    stage.look_after_the_wait()
    assert (stage.state(), len(stage.streams)) == ("parked", 2)
    stage.written = "mended"
    stage.host.look()
    assert (stage.state(), len(stage.streams)) == ("running", 3)


def test_a_change_while_a_stream_begins_is_not_missed(stage: Stage) -> None:
    stage.failures.append(DefinitionError("window", "not said", "Say where"))
    stage.meanwhile = lambda: setattr(stage, "written", "mended meanwhile")
    stage.wish("start")
    assert stage.state() == "parked"
    stage.host.look()
    assert stage.state() == "running"


def test_a_store_that_does_not_answer_for_a_while_stops_no_stream(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage.wish("start")
    stop, desired, troubles = threading.Event(), stage.store.desired, [OSError("no way to the store")] * 3

    def asked() -> Mapping[str, DesiredState]:
        if troubles:
            raise troubles.pop()
        stop.set()
        return desired()

    monkeypatch.setattr(stage.store, "desired", asked)
    stage.host.run(stop)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told == ["looked in vain, and goes on with what runs"]
    assert stage.calls == ["start", "drain"], "it ran until the host was stopped"


def test_what_no_try_can_mend_is_parked_at_once_and_whoever_waits_is_told(stage: Stage) -> None:
    stage.failures.append(DefinitionError("window", "not said", "Say where"))
    asked = stage.wish("start")
    assert stage.state() == "parked"
    with pytest.raises(StackError, match=r"s is parked: DefinitionError: window: not said\. Say where"):
        wait_for(stage.store, asked, 60)


def test_a_stream_that_fails_at_work_is_put_away_and_begun_again(stage: Stage) -> None:
    stage.wish("start")
    stage.streams[0].ended = OSError("gone")
    stage.host.look()
    assert (stage.calls, stage.state()) == (["start", "drain"], "failed")
    stage.look_after_the_wait()
    assert (stage.calls[-1], stage.state()) == ("start", "running")


def test_of_two_hosts_the_second_waits_and_says_nothing_for_the_first(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    asked = stage.wish("start")
    other = Stage(stage.store, name="other")
    with caplog.at_level(logging.INFO):
        other.host.look()
        other.host.look()
    assert [record.getMessage() for record in caplog.records] == ["waits: host has it"]
    assert (other.streams, stage.state(), is_so(stage.store, asked)) == ([], "running", True)


def test_a_host_that_slept_too_long_finds_its_stream_taken_and_lets_go_of_it(stage: Stage) -> None:
    stage.wish("start")
    other = Stage(stage.store, name="other", ahead_ms=20_000)
    other.host.look()
    lease = stage.store.holder(STREAM)
    assert lease is not None
    assert (lease.holder, lease.epoch) == ("other", 2)
    stage.ahead_ms = 20_000
    assert not stage.streams[0].right.holds(), "it need not ask anybody to know"
    stage.host.look()
    assert (stage.calls, stage.state()) == (["start", "drain"], "running")
    stage.host.look()
    assert (len(stage.streams), other.streams[0].right.holds()) == (1, True)
