"""What a host does about wishes: with a real control store, and streams that only tell."""

import threading

from tests.platform.host.staging import STREAM, Stage

from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, is_state_reached, request_state


def test_a_stream_goes_through_its_life_by_word(stage: Stage) -> None:
    for word, calls in (
        ("start", ["start"]),
        ("start", []),
        ("pause", ["pause"]),
        ("resume", ["resume"]),
        ("restart", ["drain", "start"]),
        ("pause", ["pause"]),
        ("restart", ["drain", "start"]),
        ("drain", ["drain"]),
        ("restart", ["start"]),
        ("drain", ["drain"]),
        ("pause", ["start paused"]),
        ("stop", ["stop"]),
    ):
        stage.calls.clear()
        asked = stage.wish(word)
        assert stage.calls == calls, word
        assert is_state_reached(stage.store, asked), word
        assert stage.state() == asked.desired_state.desired


def test_a_restart_is_not_done_before_the_stream_was_begun_anew(stage: Stage) -> None:
    stage.wish("start")
    asked = request_state(stage.store, STREAM, STREAM_COMMANDS["restart"], (STREAM,))
    assert not is_state_reached(stage.store, asked)
    stage.host.reconcile()
    assert is_state_reached(stage.store, asked)


def test_a_stream_that_is_here_says_since_when_whatever_was_asked_of_it_meanwhile(stage: Stage) -> None:
    """Of a file that was changed later, `penstock status` says so: the stream began before."""
    stage.meanwhile = lambda: setattr(stage, "ahead_ms", stage.ahead_ms + 7_000)
    stage.wish("start")
    began = stage.clock() - 7_000
    assert stage.since() == began, "before its pipeline was read"
    stage.ahead_ms += 1_000
    stage.wish("pause")
    stage.wish("resume")
    assert (stage.state(), stage.since()) == ("running", began)
    stage.ahead_ms += 1_000
    stage.wish("restart")
    assert stage.since() == stage.clock() - 7_000


def test_a_stream_that_cannot_be_stopped_is_kept_and_may_not_write(stage: Stage) -> None:
    stage.wish("start")
    (stream,) = stage.streams
    stream.stopping += [OSError("the query does not end")] * 2
    stage.wish("drain")
    assert (
        stage.store.read_health(STREAM).reason == "it could not be stopped: OSError: the query does not end"
    )
    assert (stage.state(), stream.right.is_held()) == ("retrying", False)
    assert stage.store.read_lease(STREAM).expires_at_ms == 0, "others could have it"
    stage.host.reconcile()
    assert stage.calls == ["start", "drain"], "it is not asked at every look"
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    assert (stage.calls, stage.state()) == (["start", "drain", "drain", "drain"], "drained")


def test_a_slow_stream_keeps_no_other_waiting(stage: Stage) -> None:
    stage = Stage(stage.store, patience_s=0.01)
    slow = threading.Event()
    stage.wish("start")
    wait_until(lambda: len(stage.streams) == 1, 30, "the slow stream")
    stage.streams[0].on_drain = lambda: assert_in_time(slow)
    stage.wish("drain")
    stage.store.set_desired_state("other", DesiredRunState.RUNNING, 0)
    wait_until(stage.looking(lambda: stage.said("other") == "running"), 30, "the other to run")
    stage.streams[1].ended = OSError("gone")
    wait_until(stage.looking(lambda: stage.said("other") == "retrying"), 30, "its failure to be seen")
    assert (stage.state(), stage.calls) == ("running", ["start", "drain", "start", "drain"])
    slow.set()
    wait_until(stage.looking(lambda: stage.state() == "drained"), 30, "the slow one to be drained")


def test_all_streams_are_drained_at_once_when_a_host_stops(stage: Stage) -> None:
    together = threading.Barrier(3)
    for name in ("a", "b", "c"):
        stage.store.set_desired_state(name, DesiredRunState.RUNNING, 0)
    stage.host.reconcile()
    for stream in stage.streams:
        stream.on_drain = lambda: (together.wait(60), None)[1]
    stage.host.run(stopped())
    assert [stage.store.read_health(name).state for name in ("a", "b", "c")] == ["stopped"] * 3


def assert_in_time(event: threading.Event) -> None:
    assert event.wait(120)


def stopped() -> threading.Event:
    stop = threading.Event()
    stop.set()
    return stop
