"""Checks with the job that makes all of them and the schedule that runs it: as every kind of check comes."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetSelection,
    DefaultScheduleStatus,
    Definitions,
    ScheduleDefinition,
    define_asset_job,
    in_process_executor,
)
from dagster._core.definitions.metadata import normalize_metadata

log = logging.getLogger(__name__)

CheckFunction = Callable[[AssetCheckExecutionContext], Iterator[AssetCheckResult]]


def build_scheduled_checks(
    checks: Sequence[AssetChecksDefinition], *, job: str, description: str, schedule: str, cron: str
) -> Definitions:
    """Make the job and its schedule, which is on. Checks are made one after the other: some start Spark."""
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
    """Tell each result of a check once more, as of no run, so that Dagster goes on to show it.

    It takes a result for one of before as soon as the asset was materialized by another run than the check's; and
    what streams write is materialized by no run, all the time. Of two that are of no run it takes both for current.
    """

    @wraps(check)
    def check_and_report(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for result in check(context):
            yield result
            context.instance.report_runless_asset_event(_to_runless_evaluation(result))

    return check_and_report


def _to_runless_evaluation(result: AssetCheckResult) -> AssetCheckEvaluation:
    if result.asset_key is None or result.check_name is None:
        raise TypeError(f"{result} does not say of which check it is")
    return AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        metadata=normalize_metadata(result.metadata or {}),
        severity=result.severity,
        description=result.description,
    )


def run_guarded(key: AssetCheckKey, make_result: Callable[[], AssetCheckResult]) -> AssetCheckResult:
    """Make a check; one that cannot be made fails with the reason, and the others of its run are made."""
    try:
        return make_result()
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer to this check alone
        return failed_result(key, error)


def failed_result(
    key: AssetCheckKey, error: Exception, metadata: Mapping[str, Any] | None = None
) -> AssetCheckResult:
    """Return what is told of a check that could not be made: why, with the place in the run's log."""
    log.error("%s could not be made", key.to_user_string(), exc_info=error)
    reason = str(error) or type(error).__name__
    return AssetCheckResult(
        passed=False,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR,
        description=f"it could not be made: {reason.splitlines()[0]}",
        metadata={"problem": reason, **(metadata or {})},
    )
