"""Freshness checks of streams, and their alerts."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from dagster import DagsterInstance, Definitions, SkipReason, build_sensor_context

from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamBacklog, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.definitions.streams.freshness import (
    REPEAT_INTERVAL_MS,
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


def test_changed_checks_are_reported_and_a_delay_is_alerted(
    tick: Callable[[], object],
    store: ControlStore,
    clock,
    make_batch: Callable[..., BatchRecord],
    alerts: list[Alert],
) -> None:
    assert tick() == "skipped", "the stream is not requested"
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    assert tick() == {"stream_hosted": True}, "it has no batch yet"
    store.record_batch(make_batch(0))
    assert tick() == {"consumer_lag_records": True, "watermark_delay_seconds": True}
    assert (tick(), alerts) == ("skipped", [])
    clock.at += 20 * MINUTE_MS
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": False}
    store.record_batch(replace(make_batch(1), watermark_ms=clock.at, lag_records=1_000))
    assert tick() == {"consumer_lag_records": False, "watermark_delay_seconds": True}
    assert [(alert.stream, alert.state, alert.reason) for alert in alerts] == [
        ("minute", "delayed", "the watermark is 1,205 s old, limit 900 s"),
        ("minute", "lagging", "1,000 records wait, limit 100"),
        ("minute", "up to date", "the watermark is 0 s old, limit 900 s"),
    ]
    clock.at += REPEAT_INTERVAL_MS - 1
    assert tick() == "skipped"
    clock.at += 60 * MINUTE_MS
    assert tick() == {"stream_hosted": True, "consumer_lag_records": False, "watermark_delay_seconds": False}
    store.set_desired_state("minute", DesiredRunState.DRAINED, 0)
    assert tick() == "skipped"


def test_an_unchanged_check_is_recorded_every_five_minutes_with_the_time_of_its_evaluation(
    store: ControlStore, clock, instance: DagsterInstance, make_batch: Callable[..., BatchRecord]
) -> None:
    """The newcomer saw a check of 18:43 at 18:56, although it was evaluated each minute."""
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    store.record_batch(make_batch(0))
    monitor = FreshnessMonitor(["minute"], [], lambda: store, clock, LIMITS)
    sensor = build_freshness_definitions(monitor, lambda _: None).resolve_sensor_def("freshness")
    cursor, recorded = None, []
    for minute in range(12):
        with build_sensor_context(instance=instance, cursor=cursor) as context:
            result = sensor(context)
        if not isinstance(result, SkipReason):
            cursor = result.cursor
            recorded.append((minute, {event.metadata["evaluated_at"].value for event in result.asset_events}))
        clock.at += MINUTE_MS
    started_at = (clock.at - 12 * MINUTE_MS) / 1000
    assert recorded == [(minute, {started_at + 60 * minute}) for minute in (0, 5, 10)]


def test_a_silent_topic_is_no_delay_of_its_stream(
    tick: Callable[[], object], store: ControlStore, clock, make_batch: Callable[..., BatchRecord], alerts
) -> None:
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    lease = store.acquire_lease("minute", "host", clock.at, 60 * MINUTE_MS)
    store.record_batch(replace(make_batch(0), lag_records=0))
    clock.at += 15 * MINUTE_MS - 1_000
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": True}, (
        "nor shortly before the limit"
    )
    clock.at += 44 * MINUTE_MS + 1_000
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": True}
    clock.at += 2 * MINUTE_MS
    assert tick() == "skipped", "a stream may change hosts"
    clock.at += 1_000
    assert tick() == {"stream_hosted": False, "watermark_delay_seconds": False}, "no host checks for records"
    store.renew_lease(lease, clock.at, MINUTE_MS)
    assert tick() == {"stream_hosted": True, "watermark_delay_seconds": True}
    assert [alert.reason for alert in alerts if "watermark" in alert.reason] == [
        "the watermark is 3,666 s old, limit 900 s",
        "the watermark is 3,666 s old, no record waits",
    ]


def test_a_watermark_ahead_of_the_clock_fails_and_is_alerted(
    tick: Callable[[], object],
    store: ControlStore,
    clock,
    make_batch: Callable[..., BatchRecord],
    alerts: list[Alert],
) -> None:
    """One record with a wrong clock moved it: every record that arrives in time is late."""
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    store.record_batch(replace(make_batch(0), watermark_ms=clock.at + MINUTE_MS, lag_records=0))
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": True}
    ahead = replace(make_batch(1), watermark_ms=clock.at + 365 * 24 * 60 * MINUTE_MS, lag_records=0)
    store.record_batch(ahead)
    assert tick() == {"watermark_delay_seconds": False}
    store.record_batch(replace(ahead, batch_id=2, watermark_ms=clock.at))
    assert tick() == {"watermark_delay_seconds": True}
    page = "platform/docs/troubleshooting.md"
    assert [(alert.state, alert.reason) for alert in alerts] == [
        ("ahead of the clock", f"the watermark is 365 d in the future, so new records are late; see {page}"),
        ("up to date", "the watermark is 0 s old, no record waits"),
    ]


def test_an_old_watermark_with_new_records_is_a_delay(
    tick: Callable[[], object], store: ControlStore, clock, make_batch: Callable[..., BatchRecord]
) -> None:
    """For example, an idle partition holds the watermark back: results are overdue."""
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    old = replace(make_batch(0), watermark_ms=clock.at - 20 * MINUTE_MS, lag_records=0)
    store.record_batch(old)
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True, "watermark_delay_seconds": False}
    store.record_batch(replace(old, batch_id=1, kind="tick"))
    assert tick() == {"watermark_delay_seconds": True}


def test_a_requested_stream_without_a_host_is_alerted(
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
def test_a_hanging_batch_is_alerted(
    tick: Callable[[], object],
    store: ControlStore,
    clock,
    make_batch: Callable[..., BatchRecord],
    alerts,
    stream,
) -> None:
    store.set_desired_state(stream, DesiredRunState.RUNNING, clock.at)
    store.acquire_lease(stream, "host", clock.at, FOREVER_MS)
    last = replace(make_batch(0, stream), watermark_ms=None, lag_records=0)
    store.record_batch(last)
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True}
    backlog = StreamBacklog(stream, 0, 3, clock.at, 1)
    store.report_backlogs([backlog])
    clock.at += 15 * MINUTE_MS
    assert tick() == {"stream_hosted": True, "consumer_lag_records": True}
    clock.at += 1_000
    assert tick() == {"consumer_lag_records": False}
    store.report_backlogs([replace(backlog, records=5)])
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


def test_a_stream_with_a_backlog_is_not_caught_up(
    store: ControlStore, clock, make_batch: Callable[..., BatchRecord]
) -> None:
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.acquire_lease("minute", "host", clock.at, FOREVER_MS)
    store.record_batch(replace(make_batch(0), lag_records=0))
    freshness = FreshnessMonitor(["minute"], [], lambda: store, clock, LIMITS)
    assert freshness.find_caught_up() == {"minute"}
    store.report_backlogs([StreamBacklog("minute", 0, 1, clock.at, 1)])
    assert freshness.find_caught_up() == set()


def test_a_delayed_archive_is_reported(
    tick: Callable[[], object], store: ControlStore, clock, make_batch: Callable[..., BatchRecord]
) -> None:
    store.set_desired_state("archive-sensors", DesiredRunState.PAUSED, clock.at)
    store.acquire_lease("archive-sensors", "host", clock.at, FOREVER_MS)
    store.record_batch(replace(make_batch(0, "archive-sensors"), watermark_ms=None, lag_records=101))
    assert tick() == {"stream_hosted": True}, "a paused archive may fall behind"
    store.set_desired_state("archive-sensors", DesiredRunState.RUNNING, clock.at)
    assert tick() == {"consumer_lag_records": False}


def test_a_stream_may_have_its_own_limits(
    store: ControlStore, clock, make_batch: Callable[..., BatchRecord]
) -> None:
    for name in ("minute", "hour"):
        store.set_desired_state(name, DesiredRunState.RUNNING, clock.at)
        store.record_batch(replace(make_batch(0, name), lag_records=500))
    clock.at += 20 * MINUTE_MS
    limits_by_stream = {"hour": FreshnessLimits(60 * MINUTE_MS, 1_000, MINUTE_MS)}
    freshness = FreshnessMonitor(["minute", "hour"], [], lambda: store, clock, LIMITS, limits_by_stream)
    passed_by_check = {
        (outcome.stream, outcome.check): outcome.passed
        for outcome in freshness.evaluate_checks()
        if outcome.check != "stream_hosted"
    }
    assert passed_by_check == {
        ("minute", "consumer_lag_records"): False,
        ("minute", "watermark_delay_seconds"): False,
        ("hour", "consumer_lag_records"): True,
        ("hour", "watermark_delay_seconds"): True,
    }


def test_freshness_checks_run_on_request(
    build_small_platform: Callable[..., Definitions],
    store: ControlStore,
    clock,
    instance: DagsterInstance,
    make_batch,
) -> None:
    store.set_desired_state("minute", DesiredRunState.RUNNING, clock.at)
    store.record_batch(make_batch(0))
    freshness = FreshnessMonitor(
        ["minute"], ["archive-sensors"], lambda: store, clock, FreshnessLimits(1_000, 100, MINUTE_MS)
    )
    defs = Definitions.merge(build_small_platform(), build_freshness_definitions(freshness, lambda _: None))
    job = defs.resolve_implicit_global_asset_job_def()
    names = {"minute", "archive-sensors"}
    keys = {key for key in job.asset_layer.asset_graph.asset_check_keys if key.asset_key.path[-1] in names}
    result = job.get_subset(asset_check_selection=keys, asset_selection=set()).execute_in_process(
        instance=instance
    )
    passed_by_check = {
        (evaluation.asset_key.path[-1], evaluation.check_name): evaluation.passed
        for evaluation in result.get_asset_check_evaluations()
    }
    assert passed_by_check == {
        ("minute", "consumer_lag_records"): True,
        ("minute", "watermark_delay_seconds"): False,
        ("minute", "stream_hosted"): True,
        ("archive-sensors", "consumer_lag_records"): True,
        ("archive-sensors", "stream_hosted"): True,
    }
