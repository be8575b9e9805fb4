"""How a host follows desired states, with a real control store and fake streams."""

import threading

from tests.patience import PATIENCE_S
from tests.platform.host.host_harness import HARNESS_PLACE, STREAM, HostHarness, hide_line

from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, is_state_reached, request_state


def test_a_stream_follows_its_commands(harness: HostHarness) -> None:
    for command, calls in (
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
        request = harness.request(command)
        assert harness.calls == calls, command
        assert is_state_reached(harness.store, request), command
        assert harness.state() == request.desired_state.desired


def test_a_restart_is_done_when_the_stream_has_started_again(harness: HostHarness) -> None:
    harness.request("start")
    request = request_state(harness.store, STREAM, STREAM_COMMANDS["restart"], (STREAM,))
    assert not is_state_reached(harness.store, request)
    harness.host.reconcile()
    assert is_state_reached(harness.store, request)


def test_a_running_stream_keeps_its_start_time_whatever_is_requested(harness: HostHarness) -> None:
    """`penstock status` compares it with the time of the last change of a file."""
    harness.before_create = lambda: setattr(harness, "ahead_ms", harness.ahead_ms + 7_000)
    harness.request("start")
    started_at = harness.clock() - 7_000
    assert harness.state_since() == started_at, "before its pipeline was read"
    harness.ahead_ms += 1_000
    harness.request("pause")
    harness.request("resume")
    assert (harness.state(), harness.state_since()) == ("running", started_at)
    harness.ahead_ms += 1_000
    harness.request("restart")
    assert harness.state_since() == harness.clock() - 7_000


def test_an_unstoppable_stream_is_retained_and_fenced(harness: HostHarness) -> None:
    harness.request("start")
    (stream,) = harness.streams
    stream.stop_failures += [OSError("the query does not end")] * 2
    harness.request("drain")
    reason = hide_line(harness.store.read_health(STREAM).reason)
    assert reason == f"it could not be stopped: drain ({HARNESS_PLACE}): OSError: the query does not end"
    assert (harness.state(), stream.fence.is_held()) == ("retrying", False)
    assert harness.store.read_lease(STREAM).expires_at_ms == 0, "others could have it"
    harness.host.reconcile()
    assert harness.calls == ["start", "drain"], "it is not stopped again at every reconciliation"
    harness.reconcile_after_backoff()
    harness.reconcile_after_backoff()
    assert (harness.calls, harness.state()) == (["start", "drain", "drain", "drain"], "drained")


def test_a_slow_stream_does_not_block_others(harness: HostHarness) -> None:
    harness = HostHarness(harness.store, step_wait_s=0.01)
    slow = threading.Event()
    harness.request("start")
    wait_until(
        harness.after_reconcile(lambda: harness.read_state(STREAM) == "running"),
        PATIENCE_S,
        "the slow one to run",
    )
    harness.streams[0].on_drain = lambda: assert_in_time(slow)
    harness.request("drain")
    wait_until(lambda: harness.calls == ["start", "drain"], PATIENCE_S, "the drain to start")
    harness.store.set_desired_state("other", DesiredRunState.RUNNING, 0)
    wait_until(
        harness.after_reconcile(lambda: harness.read_state("other") == "running"),
        PATIENCE_S,
        "the other to run",
    )
    harness.streams[1].running_failure = OSError("gone")
    wait_until(
        harness.after_reconcile(lambda: harness.read_state("other") == "retrying"),
        PATIENCE_S,
        "its failure to be observed",
    )
    assert (harness.state(), harness.calls) == ("running", ["start", "drain", "start", "drain"])
    slow.set()
    wait_until(
        harness.after_reconcile(lambda: harness.state() == "drained"),
        PATIENCE_S,
        "the slow one to be drained",
    )


def test_all_streams_are_drained_in_parallel_when_a_host_stops(harness: HostHarness) -> None:
    barrier = threading.Barrier(3)
    for name in ("a", "b", "c"):
        harness.store.set_desired_state(name, DesiredRunState.RUNNING, 0)
    harness.host.reconcile()
    for stream in harness.streams:
        stream.on_drain = lambda: (barrier.wait(60), None)[1]
    harness.host.run(create_stop_event())
    assert [harness.store.read_health(name).state for name in ("a", "b", "c")] == ["stopped"] * 3


def assert_in_time(event: threading.Event) -> None:
    assert event.wait(120)


def create_stop_event() -> threading.Event:
    stop = threading.Event()
    stop.set()
    return stop
