"""Two hosts for one stream, with a real control store and fake streams."""

import logging
import threading

import pytest
from prometheus_client import CollectorRegistry
from tests.platform.host.host_harness import STREAM, HostHarness

from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, is_state_reached, request_state


def test_of_two_hosts_the_second_waits_and_reports_no_health(
    harness: HostHarness, caplog: pytest.LogCaptureFixture
) -> None:
    request = harness.request("start")
    other = HostHarness(harness.store, name="other")
    with caplog.at_level(logging.INFO):
        other.host.reconcile()
        other.host.reconcile()
    assert [record.getMessage() for record in caplog.records] == ["Waiting for lease (holder=host)"]
    assert (other.streams, harness.state(), is_state_reached(harness.store, request)) == ([], "running", True)


def test_a_host_that_slept_past_its_lease_releases_the_stream(harness: HostHarness) -> None:
    harness.request("start")
    other = HostHarness(harness.store, name="other", ahead_ms=20_000)
    other.host.reconcile()
    lease = harness.store.read_lease(STREAM)
    assert lease is not None
    assert (lease.holder, lease.epoch) == ("other", 2)
    harness.ahead_ms = 20_000
    assert not harness.streams[0].fence.is_held(), "without asking the store"
    harness.host.reconcile()
    assert (harness.calls, harness.state()) == (["start", "drain"], "running")
    harness.host.reconcile()
    assert (len(harness.streams), other.streams[0].fence.is_held()) == (1, True)


def test_a_host_that_slept_past_its_lease_shows_no_metrics_of_its_stream(
    observed: HostHarness, registry: CollectorRegistry
) -> None:
    observed.request("start")
    assert registry.get_sample_value("penstock_stream_running", {"stream": STREAM}) == 1
    HostHarness(observed.store, name="other", ahead_ms=20_000).host.reconcile()
    observed.ahead_ms = 20_000
    observed.host.reconcile()
    assert observed.control.stream_health == {}
    assert registry.get_sample_value("penstock_stream_running", {"stream": STREAM}) is None
    assert observed.state() == "running", "as the other host reports"


def test_a_fenced_host_that_is_stopped_reports_no_health(harness: HostHarness) -> None:
    harness.request("start")
    other = HostHarness(harness.store, name="other", ahead_ms=20_000)
    other.host.reconcile()
    harness.ahead_ms = 20_000
    stop = threading.Event()
    stop.set()
    harness.host.run(stop)
    assert harness.calls == ["start", "drain"]
    assert harness.state() == "running", "as the other host reports"


def test_the_state_of_an_unstoppable_stream_is_that_of_its_new_host(harness: HostHarness) -> None:
    harness.request("start")
    harness.streams[0].stop_failures += [OSError("the query does not end")] * 2
    harness.request("restart")
    assert harness.state() == "retrying"
    other = HostHarness(harness.store, name="other")
    other.host.reconcile()
    harness.reconcile_after_backoff()
    assert (harness.calls, harness.state()) == (["start", "drain", "drain"], "running")


def test_a_stream_that_another_host_starts_is_not_yet_running(harness: HostHarness) -> None:
    harness.request("start")
    request = request_state(harness.store, STREAM, STREAM_COMMANDS["start"], (STREAM,))
    other, observed = HostHarness(harness.store, name="other", ahead_ms=20_000), list[bool]()
    other.before_create = lambda: observed.append(is_state_reached(harness.store, request))
    other.host.reconcile()
    assert (observed, is_state_reached(harness.store, request)) == ([False], True)
