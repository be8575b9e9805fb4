"""Asset checks, and the job that runs all of them with its schedule; shared by every kind of check."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetSelection,
    DefaultScheduleStatus,
    Definitions,
    ScheduleDefinition,
    define_asset_job,
    in_process_executor,
    multi_asset_check,
)
from dagster._core.definitions.metadata import normalize_metadata

log = logging.getLogger(__name__)

CheckFunction = Callable[[AssetCheckExecutionContext], Iterator[AssetCheckResult]]
SingleCheck = Callable[[AssetCheckExecutionContext, AssetCheckKey], AssetCheckResult | None]
"""Runs one check. None if there is nothing that it could check: Dagster then shows it as skipped."""


def build_checks(
    name: str, specs: Sequence[AssetCheckSpec], run_check: SingleCheck, pool: str | None = None
) -> AssetChecksDefinition:
    """Build checks of one kind that `run_check` runs one by one, in the order of their keys.

    If a check raises, its result fails with the reason, and the others still run. `pool` limits concurrent runs.
    """

    def run_selected(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            if result := run_guarded(key, partial(run_check, context, key)):
                yield result

    return build_joint_checks(name, specs, run_selected, pool)


def build_joint_checks(
    name: str, specs: Sequence[AssetCheckSpec], run_selected: CheckFunction, pool: str | None = None
) -> AssetChecksDefinition:
    """Build checks of one kind that one call runs: `run_selected` yields a result for each selected key."""
    return multi_asset_check(name=name, specs=specs, can_subset=True, pool=pool)(report_runless(run_selected))


def build_scheduled_checks(
    checks: Sequence[AssetChecksDefinition], *, job: str, description: str, schedule: str, cron: str
) -> Definitions:
    """Build the job and its schedule, which is on by default. Checks run one by one, because some start Spark."""
    keys = [key for checks_definition in checks for key in checks_definition.check_keys]
    job_definition = define_asset_job(
        job, selection=AssetSelection.checks(*keys), executor_def=in_process_executor, description=description
    )
    schedule_definition = ScheduleDefinition(
        job=job_definition,
        cron_schedule=cron,
        default_status=DefaultScheduleStatus.RUNNING,
        name=schedule,
        description=description,
    )
    return Definitions(asset_checks=checks, jobs=[job_definition], schedules=[schedule_definition])


def report_runless(check: CheckFunction) -> CheckFunction:
    """Wrap a check so that each result is also reported outside the run, and Dagster keeps showing it.

    Dagster treats a result as outdated when another run materializes the asset, and streams materialize their
    assets outside runs all the time. If both are outside runs, Dagster treats the result as current.
    """

    @wraps(check)
    def check_and_report(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for result in check(context):
            yield result
            context.instance.report_runless_asset_event(to_evaluation(result))

    return check_and_report


def to_evaluation(result: AssetCheckResult) -> AssetCheckEvaluation:
    """Return a result as the event that a sensor or a run reports outside of a run."""
    if result.asset_key is None or result.check_name is None:
        raise TypeError(f"{result} has no asset key or no check name")
    return AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        metadata=normalize_metadata(result.metadata or {}),
        severity=result.severity,
        description=result.description,
    )


def run_guarded(
    key: AssetCheckKey, make_result: Callable[[], AssetCheckResult | None]
) -> AssetCheckResult | None:
    """Run a check; if it raises, its result fails with the reason, and the other checks of the run continue."""
    try:
        return make_result()
    except Exception as error:  # noqa: BLE001  # any error is the result of this check alone
        return failed_result(key, error)


def failed_result(
    key: AssetCheckKey, error: Exception, metadata: Mapping[str, Any] | None = None
) -> AssetCheckResult:
    """Return the result of a check that raised an error; the run's log has the traceback."""
    log.error("Check %s could not run", key.to_user_string(), exc_info=error)
    reason = str(error) or type(error).__name__
    return AssetCheckResult(
        passed=False,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR,
        description=f"could not run: {reason.splitlines()[0]}",
        metadata={"problem": reason, **(metadata or {})},
    )
