"""Two hosts for one stream: with a real control store, and streams that only tell."""

import logging
import threading

import pytest
from prometheus_client import CollectorRegistry
from tests.platform.host.staging import STREAM, Stage

from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, is_state_reached, request_state


def test_of_two_hosts_the_second_waits_and_says_nothing_for_the_first(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    asked = stage.wish("start")
    other = Stage(stage.store, name="other")
    with caplog.at_level(logging.INFO):
        other.host.reconcile()
        other.host.reconcile()
    assert [record.getMessage() for record in caplog.records] == ["Waiting for lease (holder=host)"]
    assert (other.streams, stage.state(), is_state_reached(stage.store, asked)) == ([], "running", True)


def test_a_host_that_slept_too_long_finds_its_stream_taken_and_lets_go_of_it(stage: Stage) -> None:
    stage.wish("start")
    other = Stage(stage.store, name="other", ahead_ms=20_000)
    other.host.reconcile()
    lease = stage.store.read_lease(STREAM)
    assert lease is not None
    assert (lease.holder, lease.epoch) == ("other", 2)
    stage.ahead_ms = 20_000
    assert not stage.streams[0].right.is_held(), "it need not ask anybody to know"
    stage.host.reconcile()
    assert (stage.calls, stage.state()) == (["start", "drain"], "running")
    stage.host.reconcile()
    assert (len(stage.streams), other.streams[0].right.is_held()) == (1, True)


def test_a_host_that_slept_too_long_shows_nothing_of_its_stream(
    seen: Stage, registry: CollectorRegistry
) -> None:
    seen.wish("start")
    assert registry.get_sample_value("penstock_stream_running", {"stream": STREAM}) == 1
    Stage(seen.store, name="other", ahead_ms=20_000).host.reconcile()
    seen.ahead_ms = 20_000
    seen.host.reconcile()
    assert seen.control.stream_health == {}
    assert registry.get_sample_value("penstock_stream_running", {"stream": STREAM}) is None
    assert seen.state() == "running", "as the other host says"


def test_a_host_that_is_stopped_after_its_stream_was_taken_says_nothing_of_it(stage: Stage) -> None:
    stage.wish("start")
    other = Stage(stage.store, name="other", ahead_ms=20_000)
    other.host.reconcile()
    stage.ahead_ms = 20_000
    stop = threading.Event()
    stop.set()
    stage.host.run(stop)
    assert stage.calls == ["start", "drain"]
    assert stage.state() == "running", "as the other host says"


def test_a_stream_that_does_not_stop_here_is_as_the_host_says_that_took_it(stage: Stage) -> None:
    stage.wish("start")
    stage.streams[0].stopping += [OSError("the query does not end")] * 2
    stage.wish("restart")
    assert stage.state() == "retrying"
    other = Stage(stage.store, name="other")
    other.host.reconcile()
    stage.look_after_the_wait()
    assert (stage.calls, stage.state()) == (["start", "drain", "drain"], "running")


def test_a_stream_that_another_host_begins_is_not_yet_what_the_first_one_said(stage: Stage) -> None:
    stage.wish("start")
    asked = request_state(stage.store, STREAM, STREAM_COMMANDS["start"], (STREAM,))
    other, seen = Stage(stage.store, name="other", ahead_ms=20_000), list[bool]()
    other.meanwhile = lambda: seen.append(is_state_reached(stage.store, asked))
    other.host.reconcile()
    assert (seen, is_state_reached(stage.store, asked)) == ([False], True)
