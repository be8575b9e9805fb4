"""A check that has checked nothing is not shown as passed."""

from collections.abc import Callable

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckSeverity,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    Definitions,
    SkipReason,
    build_sensor_context,
)
from tests.platform.definitions.streams.test_freshness import LIMITS

from penstock.platform.definitions.streams.audit_checks import ACCOUNTED_FOR_CHECK, build_audit_definitions
from penstock.platform.definitions.streams.freshness import FreshnessMonitor, build_freshness_definitions
from penstock.platform.definitions.topics.quarantine_checks import build_quarantine_definitions
from penstock.platform.definitions.unchecked_assets import SENSOR_NAME, build_unchecked_sensor
from penstock.quality.audit.verdict import AuditReport


@pytest.fixture
def definitions(build_small_platform: Callable[..., Definitions], store, clock) -> Definitions:
    """A stream with an audit, and with freshness checks, which have a sensor of their own."""
    monitor = FreshnessMonitor(["minute"], [], lambda: store, clock, LIMITS)
    return Definitions.merge(
        build_small_platform(),
        build_audit_definitions(["minute"], lambda stream: AuditReport(stream, 0, ())),
        build_freshness_definitions(monitor, lambda _: None),
        build_quarantine_definitions(["sensors"], lambda _: []),
        Definitions(sensors=[build_unchecked_sensor()]),
    )


@pytest.fixture
def tick(definitions: Definitions, instance: DagsterInstance) -> Callable[[], list[AssetCheckEvaluation]]:
    """Evaluate the sensor, and store its events."""

    def evaluate() -> list[AssetCheckEvaluation]:
        repository = definitions.get_repository_def()
        with build_sensor_context(instance=instance, repository_def=repository) as context:
            result = repository.get_sensor_def(SENSOR_NAME)(context)
        events = [] if isinstance(result, SkipReason) else result.asset_events
        for event in events:
            instance.report_runless_asset_event(event)
        return events

    return evaluate


def test_a_topic_that_a_stream_reads_has_a_warning(
    tick: Callable[[], list[AssetCheckEvaluation]], instance: DagsterInstance
) -> None:
    """Topics are observed, not materialized."""
    instance.report_runless_asset_event(AssetObservation(["topics", "sensors"]))
    assert {event.asset_key.to_user_string() for event in tick()} == {"topics/sensors"}


def test_a_stream_that_exists_has_a_warning_until_its_first_audit(
    tick: Callable[[], list[AssetCheckEvaluation]], definitions: Definitions, instance: DagsterInstance
) -> None:
    """The graph showed a green tick beside `0 / 6 Passed`."""
    assert tick() == [], "no asset exists"
    instance.report_runless_asset_event(AssetMaterialization(["streams", "minute"]))
    (warning,) = tick()
    assert (warning.asset_check_key, warning.passed, warning.severity) == (
        AssetCheckKey(warning.asset_key, ACCOUNTED_FOR_CHECK),
        False,
        AssetCheckSeverity.WARN,
    )
    assert str(warning.description).startswith("not checked yet: ")
    assert tick() == [], "once"
    assert definitions.resolve_job_def("audit_streams").execute_in_process(instance=instance).success
    key = warning.asset_check_key
    newest = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert newest.evaluation is not None
    assert newest.evaluation.passed
    assert tick() == []
