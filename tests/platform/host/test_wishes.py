"""How a host follows desired states, with a real control store and fake streams."""

import threading

from tests.platform.host.staging import STREAM, HostHarness

from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, is_state_reached, request_state


def test_a_stream_follows_its_commands(harness: HostHarness) -> None:
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
        harness.calls.clear()
        asked = harness.request(word)
        assert harness.calls == calls, word
        assert is_state_reached(harness.store, asked), word
        assert harness.state() == asked.desired_state.desired


def test_a_restart_is_done_when_the_stream_has_started_again(harness: HostHarness) -> None:
    harness.request("start")
    asked = request_state(harness.store, STREAM, STREAM_COMMANDS["restart"], (STREAM,))
    assert not is_state_reached(harness.store, asked)
    harness.host.reconcile()
    assert is_state_reached(harness.store, asked)


def test_a_running_stream_keeps_its_start_time_whatever_is_requested(harness: HostHarness) -> None:
    """Of a file that was changed later, `penstock status` says so: the stream began before."""
    harness.meanwhile = lambda: setattr(harness, "ahead_ms", harness.ahead_ms + 7_000)
    harness.request("start")
    began = harness.clock() - 7_000
    assert harness.state_since() == began, "before its pipeline was read"
    harness.ahead_ms += 1_000
    harness.request("pause")
    harness.request("resume")
    assert (harness.state(), harness.state_since()) == ("running", began)
    harness.ahead_ms += 1_000
    harness.request("restart")
    assert harness.state_since() == harness.clock() - 7_000


def test_a_stream_that_cannot_be_stopped_is_kept_and_may_not_write(harness: HostHarness) -> None:
    harness.request("start")
    (stream,) = harness.streams
    stream.stopping += [OSError("the query does not end")] * 2
    harness.request("drain")
    assert (
        harness.store.read_health(STREAM).reason == "it could not be stopped: OSError: the query does not end"
    )
    assert (harness.state(), stream.fence.is_held()) == ("retrying", False)
    assert harness.store.read_lease(STREAM).expires_at_ms == 0, "others could have it"
    harness.host.reconcile()
    assert harness.calls == ["start", "drain"], "it is not asked at every look"
    harness.reconcile_after_backoff()
    harness.reconcile_after_backoff()
    assert (harness.calls, harness.state()) == (["start", "drain", "drain", "drain"], "drained")


def test_a_slow_stream_keeps_no_other_waiting(harness: HostHarness) -> None:
    harness = HostHarness(harness.store, step_wait_s=0.01)
    slow = threading.Event()
    harness.request("start")
    wait_until(lambda: len(harness.streams) == 1, 30, "the slow stream")
    harness.streams[0].on_drain = lambda: assert_in_time(slow)
    harness.request("drain")
    harness.store.set_desired_state("other", DesiredRunState.RUNNING, 0)
    wait_until(
        harness.after_reconcile(lambda: harness.read_state("other") == "running"), 30, "the other to run"
    )
    harness.streams[1].ended = OSError("gone")
    wait_until(
        harness.after_reconcile(lambda: harness.read_state("other") == "retrying"),
        30,
        "its failure to be observed",
    )
    assert (harness.state(), harness.calls) == ("running", ["start", "drain", "start", "drain"])
    slow.set()
    wait_until(
        harness.after_reconcile(lambda: harness.state() == "drained"), 30, "the slow one to be drained"
    )


def test_all_streams_are_drained_at_once_when_a_host_stops(harness: HostHarness) -> None:
    together = threading.Barrier(3)
    for name in ("a", "b", "c"):
        harness.store.set_desired_state(name, DesiredRunState.RUNNING, 0)
    harness.host.reconcile()
    for stream in harness.streams:
        stream.on_drain = lambda: (together.wait(60), None)[1]
    harness.host.run(stopped())
    assert [harness.store.read_health(name).state for name in ("a", "b", "c")] == ["stopped"] * 3


def assert_in_time(event: threading.Event) -> None:
    assert event.wait(120)


def stopped() -> threading.Event:
    stop = threading.Event()
    stop.set()
    return stop
