"""The sensor that raises an alert for each failed run."""

from collections.abc import Callable

from dagster import (
    DefaultSensorStatus,
    Definitions,
    RunFailureSensorContext,
    SensorDefinition,
    run_failure_sensor,
)

from penstock.core.clock import now_ms
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.services.alerts import Alert, AlertHandler


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the sensor with the alerts of the settings."""
    return Definitions(sensors=[build_failure_sensor(context.alerts, now_ms)])


def build_failure_sensor(raise_alert: AlertHandler, now_ms: Callable[[], int]) -> SensorDefinition:
    """Build the sensor; it is on by default."""

    @run_failure_sensor(
        name="failed_runs",
        default_status=DefaultSensorStatus.RUNNING,
        description="Raises an alert for each failed run.",
    )
    def report_failure(context: RunFailureSensorContext) -> None:
        run = context.dagster_run
        reason = f"run {run.run_id}: {context.failure_event.message}"
        raise_alert(Alert(f"job {run.job_name}", "failed", reason, now_ms()))

    return report_failure
