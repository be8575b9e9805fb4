"""Statistics in Dagster: figures of the last stretch, and a check for sudden change.

Dagster plots the figures on the page of the check. Those that are observed of the table it plots with the table's
newest hundred materializations, and no longer: a stream has more than these within an hour.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetObservation,
    Definitions,
    MetadataValue,
    multi_asset_check,
)

from penstock.platform.definitions.expectations import asset_of
from penstock.platform.definitions.scheduled import guarded, scheduled_checks, stays
from penstock.platform.statistics import Statistics
from penstock.quality.expectations.suite import Suite

CHECK = "steady"
JOB = "measure_tables"
EVERY_HOUR = "5 * * * *"


Plots = Callable[[Statistics], Mapping[str, MetadataValue]]
"""Plots all stretches of a table, and says where."""


def statistics_definitions(
    suites: Sequence[Suite], measure: Callable[[str], Statistics], plots: Plots = lambda _: {}
) -> Definitions:
    """A check of each table whose suite asks for statistics, made every hour."""
    if not suites:
        return Definitions()
    return scheduled_checks(
        [_checks(suites, measure, plots)],
        job=JOB,
        says="Measure tables over time, and compare the last stretch with those before it.",
        schedule="hourly_statistics",
        cron=EVERY_HOUR,
    )


def _checks(
    suites: Sequence[Suite], measure: Callable[[str], Statistics], plots: Plots
) -> AssetChecksDefinition:
    specs = [
        AssetCheckSpec(
            CHECK,
            asset=asset_of(suite),
            description="Is the last stretch of time like those before it? Its figures are observed.",
        )
        for suite in suites
    ]

    @multi_asset_check(name="statistics", specs=specs, can_subset=True)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            yield guarded(key, partial(_steady, context, key, measure, plots))

    return check


def _steady(
    context: AssetCheckExecutionContext,
    key: AssetCheckKey,
    measure: Callable[[str], Statistics],
    plots: Plots,
) -> AssetCheckResult:
    found = measure("/".join(key.asset_key.path))
    if found.last:
        context.op_execution_context.log_event(AssetObservation(key.asset_key, metadata=found.last))
    return AssetCheckResult(
        passed=not found.changes,
        asset_key=key.asset_key,
        check_name=CHECK,
        severity=AssetCheckSeverity.WARN,
        description="; ".join(map(str, found.changes)) or None,
        metadata={**found.last, "stretches": len(found.windows), **plots(found)},
    )
