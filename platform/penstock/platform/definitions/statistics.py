"""Statistics in Dagster: figures of the last stretch, which it plots over time, and a check for sudden change."""

from collections.abc import Callable, Iterator, Sequence

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetObservation,
    AssetSelection,
    DefaultScheduleStatus,
    Definitions,
    ScheduleDefinition,
    define_asset_job,
    in_process_executor,
    multi_asset_check,
)

from penstock.platform.definitions.expectations import asset_of
from penstock.platform.statistics import Statistics
from penstock.quality.expectations.suite import Suite

CHECK = "steady"
JOB = "measure_tables"
EVERY_HOUR = "5 * * * *"


def statistics_definitions(suites: Sequence[Suite], measure: Callable[[str], Statistics]) -> Definitions:
    """A check of each table whose suite asks for statistics, made every hour."""
    if not suites:
        return Definitions()
    keys = [AssetCheckKey(asset_of(suite), CHECK) for suite in suites]
    job = define_asset_job(
        JOB,
        selection=AssetSelection.checks(*keys),
        executor_def=in_process_executor,
        description="Measure tables over time, and compare the last stretch with those before it.",
    )
    hourly = ScheduleDefinition(
        job=job,
        cron_schedule=EVERY_HOUR,
        default_status=DefaultScheduleStatus.RUNNING,
        name="hourly_statistics",
    )
    return Definitions(asset_checks=[_checks(suites, measure)], jobs=[job], schedules=[hourly])


def _checks(suites: Sequence[Suite], measure: Callable[[str], Statistics]) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            CHECK,
            asset=asset_of(suite),
            description="Is the last stretch of time like those before it? Its figures are observed.",
        )
        for suite in suites
    ]

    @multi_asset_check(name="statistics", specs=specs, can_subset=True)
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            found = measure("/".join(key.asset_key.path))
            if found.last:
                context.op_execution_context.log_event(AssetObservation(key.asset_key, metadata=found.last))
            yield AssetCheckResult(
                passed=not found.changes,
                asset_key=key.asset_key,
                check_name=CHECK,
                severity=AssetCheckSeverity.WARN,
                description="; ".join(map(str, found.changes)) or None,
                metadata={**found.last, "stretches": len(found.windows)},
            )

    return check
