"""Whether streams keep up, as Dagster and people are told."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from dagster import DagsterInstance, Definitions, SkipReason, build_sensor_context

from penstock.pipelines.host.control import BatchRecord, Desired
from penstock.platform.alerts import Alert
from penstock.platform.control import ControlStore
from penstock.platform.definitions.freshness import Freshness, Limits, freshness_definitions

MINUTE_MS = 60_000


@pytest.fixture
def alerts() -> list[Alert]:
    return []


@pytest.fixture
def tick(store: ControlStore, clock, instance: DagsterInstance, alerts: list[Alert]) -> Callable[[], object]:
    freshness = Freshness(["minute"], lambda: store, clock, Limits(15 * MINUTE_MS, 100))
    sensor = freshness_definitions(freshness, alerts.append).resolve_sensor_def("freshness")
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
    store.desire("minute", Desired.RUNNING, 0)
    assert tick() == "skipped", "it did nothing yet"
    store.record_batch(sample(0))
    assert tick() == {"lag": True, "watermark_age": True}
    assert (tick(), alerts) == ("skipped", [])
    clock.at += 20 * MINUTE_MS
    assert tick() == {"watermark_age": False}
    store.record_batch(replace(sample(1), watermark_ms=clock.at, lag_records=1_000))
    assert tick() == {"lag": False, "watermark_age": True}
    assert [(alert.stream, alert.state, alert.reason) for alert in alerts] == [
        ("minute", "behind", "the watermark is 1,205 s old; 900 s are allowed"),
        ("minute", "behind", "1,000 records wait; 100 may"),
        ("minute", "fresh again", "the watermark is 0 s old; 900 s are allowed"),
    ]
    clock.at += 60 * MINUTE_MS
    assert tick() == {"lag": False, "watermark_age": False}
    store.desire("minute", Desired.DRAINED, 0)
    assert tick() == "skipped"


def test_checks_can_be_asked_for(
    make: Callable[..., Definitions], store: ControlStore, clock, instance: DagsterInstance, sample
) -> None:
    store.desire("minute", Desired.RUNNING, 0)
    store.record_batch(sample(0))
    freshness = Freshness(["minute"], lambda: store, clock, Limits(1_000, 100))
    defs = Definitions.merge(make(), freshness_definitions(freshness, lambda _: None))
    job = defs.resolve_implicit_global_asset_job_def()
    keys = {key for key in job.asset_layer.asset_graph.asset_check_keys if key.asset_key.path[-1] == "minute"}
    result = job.get_subset(asset_check_selection=keys, asset_selection=set()).execute_in_process(
        instance=instance
    )
    found = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert found == {"lag": True, "watermark_age": False}
