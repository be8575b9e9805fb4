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

Check = Callable[[AssetCheckExecutionContext], Iterator[AssetCheckResult]]


def scheduled_checks(
    checks: Sequence[AssetChecksDefinition], *, job: str, says: str, schedule: str, cron: str
) -> Definitions:
    """Make the job and its schedule, which is on. Checks are made one after the other: some start Spark."""
    keys = [key for each in checks for key in each.check_keys]
    every = define_asset_job(
        job, selection=AssetSelection.checks(*keys), executor_def=in_process_executor, description=says
    )
    when = ScheduleDefinition(
        job=every,
        cron_schedule=cron,
        default_status=DefaultScheduleStatus.RUNNING,
        name=schedule,
        description=says,
    )
    return Definitions(asset_checks=checks, jobs=[every], schedules=[when])


def stays(check: Check) -> Check:
    """Tell each result of a check once more, as of no run, so that Dagster goes on to show it.

    It takes a result for one of before as soon as the asset was materialized by another run than the check's; and
    what streams write is materialized by no run, all the time. Of two that are of no run it takes both for current.
    """

    @wraps(check)
    def told(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for result in check(context):
            yield result
            context.instance.report_runless_asset_event(_of_no_run(result))

    return told


def _of_no_run(result: AssetCheckResult) -> AssetCheckEvaluation:
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


def guarded(key: AssetCheckKey, make: Callable[[], AssetCheckResult]) -> AssetCheckResult:
    """Make a check; one that cannot be made fails with the reason, and the others of its run are made."""
    try:
        return make()
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to this check alone
        return failed(key, problem)


def failed(
    key: AssetCheckKey, problem: Exception, metadata: Mapping[str, Any] | None = None
) -> AssetCheckResult:
    """Return what is told of a check that could not be made: why, with the place in the run's log."""
    log.error("%s could not be made", key.to_user_string(), exc_info=problem)
    reason = str(problem) or type(problem).__name__
    return AssetCheckResult(
        passed=False,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR,
        description=f"it could not be made: {reason.splitlines()[0]}",
        metadata={"problem": reason, **(metadata or {})},
    )
