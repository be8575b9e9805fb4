"""A topic without records makes no stream overdue in Dagster; a stream that does not keep up is overdue."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.platform.definitions.conftest import Clock
from tests.platform.definitions.test_sensor import Daemon, told

from penstock.engine.host.control import BatchRecord, DesiredRunState
from penstock.platform.control import ControlStore
from penstock.platform.definitions.asset_specs import FRESHNESS_WINDOW
from penstock.platform.definitions.streams.batch_sensor import IDLE_REPORT_INTERVAL_MS
from penstock.platform.definitions.streams.freshness import FreshnessLimits, FreshnessMonitor

MINUTE_MS = 60_000
LIMITS = FreshnessLimits(15 * MINUTE_MS, 100, MINUTE_MS)


@pytest.fixture
def freshness(store: ControlStore, clock: Clock) -> FreshnessMonitor:
    """Judges a stream that runs, has a host, and committed a batch that left nothing."""
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    return FreshnessMonitor(["minute"], [], lambda: store, clock, LIMITS)


def test_a_stream_that_keeps_up_is_told_of_again_though_nothing_comes_and_each_batch_once(
    make, instance, store, clock, sample: Callable[[int], BatchRecord], freshness: FreshnessMonitor
) -> None:
    lease = store.acquire_lease("minute", "host", clock.at, 60 * MINUTE_MS)
    daemon = Daemon(make(keeping_up=freshness.find_caught_up), instance)
    store.record_batch(replace(sample(0), lag_records=0))
    assert told(daemon.tick()) == [(0, 0)]
    clock.at += IDLE_REPORT_INTERVAL_MS - 1
    assert daemon.tick() == []
    clock.at += 1
    events = daemon.tick()
    assert told(events) == [(1, 0)]
    assert len(events) == 1, "its tables did not change"
    store.record_batch(replace(sample(1), lag_records=0))
    clock.at += MINUTE_MS
    assert told(daemon.tick()) == [(1, 1)]
    store.release_lease(lease)
    clock.at += 2 * IDLE_REPORT_INTERVAL_MS
    assert daemon.tick() == [], "nobody has it"


def test_it_is_told_twice_as_often_as_dagster_calls_a_stream_overdue() -> None:
    assert FRESHNESS_WINDOW.total_seconds() * 1000 >= 2 * IDLE_REPORT_INTERVAL_MS


def test_a_stream_that_left_a_record_and_does_nothing_about_it_is_not_told_to_be_up_to_date(
    make, instance, store, clock, sample, freshness: FreshnessMonitor
) -> None:
    store.acquire_lease("minute", "host", clock.at, 60 * MINUTE_MS)
    daemon = Daemon(make(keeping_up=freshness.find_caught_up), instance)
    store.record_batch(replace(sample(0), lag_records=1))
    assert told(daemon.tick()) == [(0, 0)]
    clock.at += 2 * IDLE_REPORT_INTERVAL_MS
    assert daemon.tick() == []
