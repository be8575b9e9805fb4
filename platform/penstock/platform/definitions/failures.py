"""A run of a job that failed, told like any other alert."""

from collections.abc import Callable

from dagster import DefaultSensorStatus, RunFailureSensorContext, SensorDefinition, run_failure_sensor

from penstock.platform.alerts import Alert, Raise


def failure_sensor(alert: Raise, now_ms: Callable[[], int]) -> SensorDefinition:
    """Make the sensor, running from the first start on."""

    @run_failure_sensor(
        name="failed_runs",
        default_status=DefaultSensorStatus.RUNNING,
        description="Raises an alert for each run that fails.",
    )
    def failed(context: RunFailureSensorContext) -> None:
        run = context.dagster_run
        said = f"run {run.run_id}: {context.failure_event.message}"
        alert(Alert(f"job {run.job_name}", "failed", said, now_ms()))

    return failed
