"""Warnings for checks that have checked nothing yet.

Dagster's graph shows a check without an evaluation as passed: a green tick beside `0 / 6 Passed`. So an asset that
exists gets a warning for each check without an evaluation, until its first one. An asset that does not exist gets
none: there is nothing to warn about.
"""

from collections.abc import Iterator, Sequence

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetKey,
    DagsterInstance,
    DefaultSensorStatus,
    Definitions,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import to_evaluation
from penstock.platform.definitions.streams.freshness import FRESHNESS_CHECKS

SENSOR_NAME = "unchecked_assets"
SENSOR_INTERVAL_S = 60
NEVER_RUN_REASON = (
    "the check has not run since its asset exists; run it now with Execute, or wait for its schedule"
)


def build_definitions(_context: DefinitionsContext) -> Definitions:
    """Build the sensor that reports checks without an evaluation."""
    return Definitions(sensors=[build_unchecked_sensor()])


def build_unchecked_sensor() -> SensorDefinition:
    """Build the sensor; it is on by default."""
    return SensorDefinition(
        name=SENSOR_NAME,
        evaluation_fn=_report_unchecked,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Reports a warning for each check that was never evaluated although its asset exists.",
    )


def build_unchecked_result(
    instance: DagsterInstance, key: AssetCheckKey, reason: str
) -> AssetCheckResult | None:
    """Return a warning that a check had nothing to check; None while its asset does not exist."""
    return _warn_unchecked(key, reason) if _list_existing(instance, [key.asset_key]) else None


def _report_unchecked(context: SensorEvaluationContext) -> SensorResult | SkipReason:
    assert context.repository_def is not None, "Dagster evaluates sensors of a repository"
    check_keys = [
        key
        for key in sorted(context.repository_def.asset_graph.asset_check_keys)
        if key.name not in FRESHNESS_CHECKS  # its own sensor evaluates them each minute
    ]
    events = [
        to_evaluation(_warn_unchecked(key, NEVER_RUN_REASON))
        for key in _find_unchecked(context.instance, check_keys)
    ]
    return SensorResult(asset_events=events) if events else SkipReason("Every asset that exists was checked")


def _find_unchecked(
    instance: DagsterInstance, check_keys: Sequence[AssetCheckKey]
) -> Iterator[AssetCheckKey]:
    evaluated = instance.event_log_storage.get_latest_asset_check_execution_by_key(check_keys)
    never_evaluated = [key for key in check_keys if key not in evaluated]
    existing = _list_existing(instance, sorted({key.asset_key for key in never_evaluated}))
    return (key for key in never_evaluated if key.asset_key in existing)


def _list_existing(instance: DagsterInstance, asset_keys: Sequence[AssetKey]) -> set[AssetKey]:
    """Return the assets that were materialized, or observed as topics are."""
    materialized = {
        record.asset_entry.asset_key
        for record in instance.get_asset_records(asset_keys)
        if record.asset_entry.last_materialization
    }
    observed = {
        key for key in {*asset_keys} - materialized if instance.fetch_observations(key, limit=1).records
    }
    return materialized | observed


def _warn_unchecked(key: AssetCheckKey, reason: str) -> AssetCheckResult:
    return AssetCheckResult(
        passed=False,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.WARN,
        description=f"not checked yet: {reason}",
        metadata={"state": "not checked yet"},
    )
