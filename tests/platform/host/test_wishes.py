"""What a host does about wishes and failures: with a real control store, and streams that only tell."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry

from penstock.infra.waiting import wait_until
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.right import Right
from penstock.pipelines.errors import DefinitionError, PublishError
from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.host.control import Control, Desired, DesiredState
from penstock.pipelines.host.host import Host
from penstock.pipelines.host.telling import batch_record
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.control.reports import history
from penstock.platform.errors import StackError
from penstock.platform.host.metrics import HostMetrics
from penstock.platform.host.observed import ObservedControl
from penstock.platform.lifecycle import VERBS, Asked, ask, is_so, wait_for

STREAM = "s"
BAD = ArithmeticError("divided by nothing")
"""What a stream does to itself."""


@dataclass
class Telling:
    """A stream that tells what it was asked to do; it fails at its start while there are failures left."""

    right: Right
    calls: list[str]
    failures: list[Exception]
    ended: Exception | None = None
    kept: list[Outcome] = field(default_factory=list)
    told: Callable[[Outcome], None] = lambda _: None
    stopping: list[Exception] = field(default_factory=list)
    on_drain: Callable[[], None] = lambda: None

    def decided(self, after: int) -> list[Outcome]:
        return [each for each in self.kept if each.batch_id > after]

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
        self.on_drain()
        if self.stopping:
            raise self.stopping.pop()

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
    kept: list[Outcome] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    ahead_ms: int = 0
    name: str = "host"
    patience_s: float = 30.0
    control: Control | None = None
    """What the host speaks to, where that is not the store itself."""

    def __post_init__(self) -> None:
        self.host = Host(
            self.name,
            self.control or self.store,
            self.make,
            self.clock,
            alive=lambda: True,
            look_every_s=0.01,
            patience_s=self.patience_s,
            park_after=3,
            written=lambda _: self.written,
        )

    def clock(self) -> int:
        return now_ms() + self.ahead_ms

    def make(self, name: str, right: Right, told: Callable[[Outcome], None]) -> Telling:
        self.meanwhile()
        self.streams.append(Telling(right, self.calls, self.failures, kept=self.kept, told=told))
        return self.streams[-1]

    def wish(self, word: str) -> Asked:
        asked = ask(self.store, STREAM, VERBS[word], (STREAM,))
        self.host.look()
        return asked

    def look_after_the_wait(self) -> None:
        self.ahead_ms += 70_000
        self.host.look()

    def looking(self, condition: Callable[[], bool]) -> Callable[[], bool]:
        """A condition that is asked for after another look."""
        return lambda: (self.host.look(), condition())[1]

    def state(self) -> str:
        told = self.said(STREAM)
        assert told is not None
        return told

    def said(self, stream: str) -> str | None:
        told = self.store.health(stream)
        return None if told is None else told.state


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
    stage.failures += [BAD] * 5
    stage.wish("start")
    assert stage.state() == "failed"
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    told = stage.store.health(STREAM)
    assert told.state == "parked"
    assert told.reason == (
        "ArithmeticError: divided by nothing (batch 7, offsets t/0 10 to 20); given up after 3 tries. "
        "`penstock stream start s` tries again, and so does a change of its files"
    )
    stage.look_after_the_wait()
    assert len(stage.streams) == 3, "a parked stream is left alone"
    assert stage.store.holder(STREAM).expires_at_ms == 0, "and others could have it"


def test_a_parked_stream_is_tried_again_when_somebody_asks(stage: Stage) -> None:
    stage.failures += [BAD] * 3
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


@pytest.mark.parametrize(
    "problem",
    [
        OSError("disk full"),
        KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
        PublishError("t", "its broker is away"),
        RuntimeError("[STREAM_FAILED] org.apache.kafka.common.errors.TimeoutException: no answer"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_what_comes_from_around_a_stream_is_tried_for_ever(stage: Stage, problem: Exception) -> None:
    stage.failures += [problem] * 30
    stage.wish("start")
    for _ in range(29):
        assert stage.state() == "failed"
        stage.look_after_the_wait()
    stage.look_after_the_wait()
    assert (stage.state(), len(stage.streams)) == ("running", 31)


def test_what_ones_own_code_says_parks_its_stream_whatever_it_says(stage: Stage) -> None:
    stage.failures += [RuntimeError("PythonException: java.net.ConnectException, as my own code says")] * 3
    stage.wish("start")
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    assert stage.state() == "parked"


def test_a_stream_that_cannot_be_stopped_is_kept_and_may_not_write(stage: Stage) -> None:
    stage.wish("start")
    (stream,) = stage.streams
    stream.stopping += [OSError("the query does not end")] * 2
    stage.wish("drain")
    assert stage.store.health(STREAM).reason == "it could not be stopped: OSError: the query does not end"
    assert (stage.state(), stream.right.holds()) == ("failed", False)
    assert stage.store.holder(STREAM).expires_at_ms == 0, "others could have it"
    stage.host.look()
    assert stage.calls == ["start", "drain"], "it is not asked at every look"
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    assert (stage.calls, stage.state()) == (["start", "drain", "drain", "drain"], "drained")


def outcome(number: int) -> Outcome:
    return Outcome(number, "data", 0, 1, None, Watermark(), {}, {}, {})


class Away:
    """Stands before a store: while it is away, nobody learns or tells anything."""

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self.away = False

    def __getattr__(self, name: str) -> Any:
        if self.away and not name.startswith("_"):
            raise OSError("no way to the store")
        return getattr(self._store, name)


def told(store: ControlStore) -> list[int]:
    return [record.batch_id for record in history(store, STREAM)]


def test_batches_of_a_while_without_a_store_are_told_later_in_order(stage: Stage) -> None:
    before = Away(stage.store)
    host = Stage(stage.store, control=before)
    host.wish("start")
    (stream,) = host.streams
    stream.told(outcome(0))
    before.away = True
    for number in (1, 2, 3):
        stream.told(outcome(number))
    before.away = False
    stream.told(outcome(4))
    wait_until(lambda: len(told(stage.store)) == 5, 30, "all to be told")
    assert told(stage.store) == [0, 1, 2, 3, 4]


def test_what_a_host_could_not_tell_any_more_the_next_one_tells(stage: Stage) -> None:
    stage.store.record_batch(batch_record(STREAM, outcome(2)))
    stage.kept = [outcome(number) for number in range(6)]
    stage.wish("start")
    stage.streams[0].told(outcome(5))  # as a stream does that is begun
    stage.streams[0].told(outcome(6))
    stage.wish("drain")
    assert told(stage.store) == [2, 3, 4, 5, 6]


def test_a_batch_that_the_store_cannot_hold_does_not_keep_the_next_ones(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.wish("start")
    stage.streams[0].told(replace(outcome(0), panes={"of no timing": 1}))
    stage.streams[0].told(outcome(1))
    stage.wish("drain")
    assert told(stage.store) == [1]
    assert "the control store cannot hold this batch; its tables do" in caplog.messages


def test_a_slow_stream_keeps_no_other_waiting(stage: Stage) -> None:
    stage = Stage(stage.store, patience_s=0.01)
    slow = threading.Event()
    stage.wish("start")
    wait_until(lambda: len(stage.streams) == 1, 30, "the slow stream")
    stage.streams[0].on_drain = lambda: assert_in_time(slow)
    stage.wish("drain")
    stage.store.desire("other", Desired.RUNNING, 0)
    wait_until(stage.looking(lambda: stage.said("other") == "running"), 30, "the other to run")
    stage.streams[1].ended = OSError("gone")
    wait_until(stage.looking(lambda: stage.said("other") == "failed"), 30, "its failure to be seen")
    assert (stage.state(), stage.calls) == ("running", ["start", "drain", "start", "drain"])
    slow.set()
    wait_until(stage.looking(lambda: stage.state() == "drained"), 30, "the slow one to be drained")


def test_all_streams_are_drained_at_once_when_a_host_stops(stage: Stage) -> None:
    together = threading.Barrier(3)
    for name in ("a", "b", "c"):
        stage.store.desire(name, Desired.RUNNING, 0)
    stage.host.look()
    for stream in stage.streams:
        stream.on_drain = lambda: (together.wait(10), None)[1]
    stage.host.run(stopped())
    assert [stage.store.health(name).state for name in ("a", "b", "c")] == ["stopped"] * 3


def assert_in_time(event: threading.Event) -> None:
    assert event.wait(10)


def stopped() -> threading.Event:
    stop = threading.Event()
    stop.set()
    return stop


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def seen(stage: Stage, registry: CollectorRegistry) -> Stage:
    """The same, with a host that is seen from outside."""
    return Stage(stage.store, control=ObservedControl(stage.store, HostMetrics(registry)))


def test_every_try_that_fails_is_counted_also_when_the_reason_stays(
    seen: Stage, registry: CollectorRegistry
) -> None:
    seen.failures += [OSError("disk full")] * 4
    seen.wish("start")
    for _ in range(4):
        seen.look_after_the_wait()
    assert seen.state() == "running"
    assert registry.get_sample_value("penstock_stream_failures_total", {"stream": STREAM}) == 4


def test_a_host_that_slept_too_long_shows_nothing_of_its_stream(
    seen: Stage, registry: CollectorRegistry
) -> None:
    seen.wish("start")
    assert registry.get_sample_value("penstock_stream_running", {"stream": STREAM}) == 1
    Stage(seen.store, name="other", ahead_ms=20_000).host.look()
    seen.ahead_ms = 20_000
    seen.host.look()
    assert seen.control.streams == {}
    assert registry.get_sample_value("penstock_stream_running", {"stream": STREAM}) is None
    assert seen.state() == "running", "as the other host says"
