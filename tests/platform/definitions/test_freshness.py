"""Whether streams keep up, as Dagster and people are told."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from dagster import DagsterInstance, Definitions, SkipReason, build_sensor_context

from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamBacklog, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.definitions.streams.freshness import (
    FreshnessLimits,
    FreshnessMonitor,
    build_freshness_definitions,
)
from penstock.platform.services.alerts import Alert

MINUTE_MS = 60_000
LIMITS = FreshnessLimits(15 * MINUTE_MS, 100, MINUTE_MS)
FOREVER_MS = 10**12


@pytest.fixture
def alerts() -> list[Alert]:
    return []


@pytest.fixture
def tick(store: ControlStore, clock, instance: DagsterInstance, alerts: list[Alert]) -> Callable[[], object]:
    freshness = FreshnessMonitor(["minute"], ["archive-sensors"], lambda: store, clock, LIMITS)
    sensor = build_freshness_definitions(freshness, alerts.append).resolve_sensor_def("freshness")
    cursor: list[str | None] = [None]

    def evaluate() -> object:
        with build_sensor_context(instance=instance, cursor=cursor[0]) as context:
            result = sensor(context)
        if isinstance(result, SkipReason):
            return "skipped"
        cursor[0] = result.cursor
        return {event.check_name: event.passed for event in result.asset_events}

    return evaluate


def test_checks_are_told_when_they_change_and_people_when_a_stream_falls_behind(
    tick: Callable[[], object],
    store: ControlStore,
    clock,
    sample: Callable[..., BatchRecord],
    alerts: list[Alert],
) -> None:
    assert tick() == "skipped", "nobody asked for the stream"
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    assert tick() == {"stream_hosted": True}, "it did nothing yet"
    store.record_batch(sample(0))
    assert tick() == {"consumer_lag_records": True, "watermark_delay_seconds": True}
    assert (tick(), alerts) == ("skipped", [])
    clock.at += 20 * MINUTE_MS
    assert tick() == {"watermark_delay_seconds": False}
    store.record_batch(replace(sample(1), watermark_ms=clock.at, lag_records=1_000))
    assert tick() == {"consumer_lag_records": False, "watermark_delay_seconds": True}
    assert [(alert.stream, alert.state, alert.reason) for alert in alerts] == [
        ("minute", "delayed", "the watermark is 1,205 s old, limit 900 s"),
        ("minute", "lagging", "1,000 records wait, limit 100"),
        ("minute", "up to date", "the watermark is 0 s old, limit 900 s"),
    ]
    clock.at += 60 * MINUTE_MS
    assert tick() == {"stream_hosted": True, "consumer_lag_records": False, "watermark_delay_seconds": False}
    store.set_desired_state("minute", DesiredRunState.DRAINED, 0)
    assert tick() == "skipped"


def test_a_topic_that_nobody_writes_to_is_no_fault_of_the_stream(
    tick: Callable[[], object], store: ControlStore, clock, sample: Callable[..., BatchRecord], alerts
) -> None:
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    lease = store.acquire_lease("minute", "host", clock.at, 60 * MINUTE_MS)
    store.record_batch(replace(sample(0), lag_records=0))
    clock.at += 15 * MINUTE_MS - 1_000
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": True}, (
        "nor for a moment, when it grows old"
    )
    clock.at += 44 * MINUTE_MS + 1_000
    assert tick() == "skipped"
    clock.at += 2 * MINUTE_MS
    assert tick() == "skipped", "a stream may change hosts"
    clock.at += 1_000
    assert tick() == {"stream_hosted": False, "watermark_delay_seconds": False}, (
        "nobody looks whether records come"
    )
    store.renew_lease(lease, clock.at, MINUTE_MS)
    assert tick() == {"stream_hosted": True, "watermark_delay_seconds": True}
    assert [alert.reason for alert in alerts if "watermark" in alert.reason] == [
        "the watermark is 3,666 s old, limit 900 s",
        "the watermark is 3,666 s old, no record waits",
    ]


def test_records_that_flow_past_an_old_watermark_are_a_fault_though_none_waits(
    tick: Callable[[], object], store: ControlStore, clock, sample: Callable[..., BatchRecord]
) -> None:
    """A partition that is silent holds it back, say: results on time are overdue."""
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    old = replace(sample(0), watermark_ms=clock.at - 20 * MINUTE_MS, lag_records=0)
    store.record_batch(old)
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": False}
    store.record_batch(replace(old, batch_id=1, kind="tick"))
    assert tick() == {"watermark_delay_seconds": True}


def test_a_stream_that_is_to_run_and_has_no_host_for_a_while_is_told_of_even_if_it_never_wrote(
    tick: Callable[[], object], store: ControlStore, clock, alerts: list[Alert]
) -> None:
    store.set_desired_state("archive-sensors", DesiredRunState.RUNNING, clock.at)
    clock.at += MINUTE_MS
    assert tick() == {"stream_hosted": True}
    clock.at += 1_000
    assert tick() == {"stream_hosted": False}
    lease = store.acquire_lease("archive-sensors", "host", clock.at, MINUTE_MS)
    assert tick() == {"stream_hosted": True}
    store.release_lease(lease)
    store.report_health(StreamHealth("archive-sensors", StreamState.FAILED, "no disk", clock.at))
    clock.at += 2 * MINUTE_MS
    assert tick() == {"stream_hosted": False}
    assert [(alert.stream, alert.state, alert.reason) for alert in alerts] == [
        ("archive-sensors", "without a host", "no host for 61 s, limit 60 s"),
        ("archive-sensors", "hosted again", "hosted by host"),
        (
            "archive-sensors",
            "without a host",
            "no host for 120 s, limit 60 s; failed: no disk",
        ),
    ]


@pytest.mark.parametrize("stream", ["minute", "archive-sensors"])
def test_a_batch_that_hangs_is_told_of_though_none_waited_when_the_last_was_committed(
    tick: Callable[[], object], store: ControlStore, clock, sample: Callable[..., BatchRecord], alerts, stream
) -> None:
    store.set_desired_state(stream, DesiredRunState.RUNNING, clock.at)
    store.acquire_lease(stream, "host", clock.at, FOREVER_MS)
    last = replace(sample(0, stream), watermark_ms=None, lag_records=0)
    store.record_batch(last)
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True}
    waiting = StreamBacklog(stream, 0, 3, clock.at, 1)
    store.report_backlogs([waiting])
    clock.at += 15 * MINUTE_MS
    assert tick() == "skipped"
    clock.at += 1_000
    assert tick() == {"consumer_lag_records": False}
    store.report_backlogs([replace(waiting, records=5)])
    store.record_batch(replace(last, batch_id=1))
    assert tick() == {"consumer_lag_records": True}
    assert [(alert.stream, alert.state, alert.reason) for alert in alerts] == [
        (
            stream,
            "lagging",
            "3 records wait, limit 100; no batch for 901 s, limit 900 s",
        ),
        (stream, "up to date", "0 records wait, limit 100"),
    ]


def test_a_stream_for_which_records_wait_is_not_told_to_keep_up(
    store: ControlStore, clock, sample: Callable[..., BatchRecord]
) -> None:
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    store.record_batch(replace(sample(0), lag_records=0))
    freshness = FreshnessMonitor(["minute"], [], lambda: store, clock, LIMITS)
    assert freshness.find_caught_up() == {"minute"}
    store.report_backlogs([StreamBacklog("minute", 0, 1, clock.at, 1)])
    assert freshness.find_caught_up() == set()


def test_an_archive_that_falls_behind_is_told_of(
    tick: Callable[[], object], store: ControlStore, clock, sample: Callable[..., BatchRecord]
) -> None:
    store.set_desired_state("archive-sensors", DesiredRunState.PAUSED, clock.at)
    store.acquire_lease("archive-sensors", "host", clock.at, FOREVER_MS)
    store.record_batch(replace(sample(0, "archive-sensors"), watermark_ms=None, lag_records=101))
    assert tick() == {"stream_hosted": True}, "one that is paused is to fall behind"
    store.set_desired_state("archive-sensors", DesiredRunState.RUNNING, clock.at)
    assert tick() == {"consumer_lag_records": False}


def test_a_stream_may_have_limits_of_its_own(
    store: ControlStore, clock, sample: Callable[..., BatchRecord]
) -> None:
    for name in ("minute", "hour"):
        store.set_desired_state(name, DesiredRunState.RUNNING, clock.at)
        store.record_batch(replace(sample(0, name), lag_records=500))
    clock.at += 20 * MINUTE_MS
    own = {"hour": FreshnessLimits(60 * MINUTE_MS, 1_000, MINUTE_MS)}
    freshness = FreshnessMonitor(["minute", "hour"], [], lambda: store, clock, LIMITS, own)
    found = {
        (one.stream, one.check): one.passed
        for one in freshness.evaluate_checks()
        if one.check != "stream_hosted"
    }
    assert found == {
        ("minute", "consumer_lag_records"): False,
        ("minute", "watermark_delay_seconds"): False,
        ("hour", "consumer_lag_records"): True,
        ("hour", "watermark_delay_seconds"): True,
    }


def test_checks_can_be_asked_for(
    make: Callable[..., Definitions], store: ControlStore, clock, instance: DagsterInstance, sample
) -> None:
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.record_batch(sample(0))
    freshness = FreshnessMonitor(
        ["minute"], ["archive-sensors"], lambda: store, clock, FreshnessLimits(1_000, 100, MINUTE_MS)
    )
    defs = Definitions.merge(make(), build_freshness_definitions(freshness, lambda _: None))
    job = defs.resolve_implicit_global_asset_job_def()
    names = {"minute", "archive-sensors"}
    keys = {key for key in job.asset_layer.asset_graph.asset_check_keys if key.asset_key.path[-1] in names}
    result = job.get_subset(asset_check_selection=keys, asset_selection=set()).execute_in_process(
        instance=instance
    )
    found = {
        (each.asset_key.path[-1], each.check_name): each.passed
        for each in result.get_asset_check_evaluations()
    }
    assert found == {
        ("minute", "consumer_lag_records"): True,
        ("minute", "watermark_delay_seconds"): False,
        ("minute", "stream_hosted"): True,
        ("archive-sensors", "consumer_lag_records"): True,
        ("archive-sensors", "stream_hosted"): True,
    }
