"""Idle streams that keep up are not overdue in Dagster; delayed ones are."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.platform.definitions.conftest import Clock
from tests.platform.definitions.streams.test_batch_sensor import Daemon, list_batch_ranges

from penstock.engine.host.control import BatchRecord, DesiredRunState
from penstock.platform.control import ControlStore
from penstock.platform.definitions.asset_specs import FRESHNESS_WINDOW
from penstock.platform.definitions.streams.batch_sensor import IDLE_REPORT_INTERVAL_MS
from penstock.platform.definitions.streams.freshness import FreshnessLimits, FreshnessMonitor

MINUTE_MS = 60_000
LIMITS = FreshnessLimits(15 * MINUTE_MS, 100, MINUTE_MS)


@pytest.fixture
def freshness(store: ControlStore, clock: Clock) -> FreshnessMonitor:
    """The freshness of a requested stream."""
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    return FreshnessMonitor(["minute"], [], lambda: store, clock, LIMITS)


def test_a_caught_up_stream_is_reported_again_without_new_batches(
    build_small_platform,
    instance,
    store,
    clock,
    make_batch: Callable[[int], BatchRecord],
    freshness: FreshnessMonitor,
) -> None:
    lease = store.acquire_lease("minute", "host", clock.at, 60 * MINUTE_MS)
    daemon = Daemon(build_small_platform(find_caught_up=freshness.find_caught_up), instance, clock)
    store.record_batch(replace(make_batch(0), lag_records=0))
    assert list_batch_ranges(daemon.tick_when_over()) == [(0, 0)]
    clock.at += IDLE_REPORT_INTERVAL_MS - 1
    assert daemon.tick() == []
    clock.at += 1
    events = daemon.tick()
    assert list_batch_ranges(events) == [(1, 0)]
    assert len(events) == 1, "its tables did not change"
    store.record_batch(replace(make_batch(1), lag_records=0, clock_ms=clock.at))
    assert list_batch_ranges(daemon.tick_when_over()) == [(1, 1)]
    store.release_lease(lease)
    clock.at += 2 * IDLE_REPORT_INTERVAL_MS
    assert daemon.tick() == [], "no host has it"


def test_the_idle_report_interval_fits_twice_into_the_freshness_window() -> None:
    assert FRESHNESS_WINDOW.total_seconds() * 1000 >= 2 * IDLE_REPORT_INTERVAL_MS


def test_a_stream_with_a_backlog_is_not_reported_again(
    build_small_platform, instance, store, clock, make_batch, freshness: FreshnessMonitor
) -> None:
    store.acquire_lease("minute", "host", clock.at, 60 * MINUTE_MS)
    daemon = Daemon(build_small_platform(find_caught_up=freshness.find_caught_up), instance, clock)
    store.record_batch(replace(make_batch(0), lag_records=1))
    assert list_batch_ranges(daemon.tick_when_over()) == [(0, 0)]
    clock.at += 2 * IDLE_REPORT_INTERVAL_MS
    assert daemon.tick() == []
