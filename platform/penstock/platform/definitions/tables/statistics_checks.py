"""Statistics in Dagster: figures of the last interval, and a check for sudden changes.

Dagster plots the figures on the check's page. It would plot observations of the table only for the newest hundred
materializations, which a stream writes within an hour.
"""

from collections.abc import Callable, Mapping, Sequence

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetObservation,
    Definitions,
    MetadataValue,
)

from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.scheduled_checks import build_checks, build_scheduled_checks
from penstock.platform.definitions.tables.check_services import create_check_services, file_link
from penstock.platform.definitions.tables.expectation_checks import suite_asset_key
from penstock.platform.definitions.unchecked_assets import build_unchecked_result
from penstock.platform.services.statistics import (
    TableStatistics,
    list_measured_suites,
    measure_table,
    publish_statistics,
)
from penstock.quality.expectations.suite import Suite

NO_SUDDEN_CHANGE_CHECK = "no_sudden_change"
STATISTICS_JOB = "measure_tables"
HOURLY_CRON = "5 * * * *"


PlotPublisher = Callable[[TableStatistics], Mapping[str, MetadataValue]]
"""Plots all intervals of a table and returns links to the plots."""


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the statistics checks of every table whose suite asks for them."""
    settings = context.settings
    return build_statistics_definitions(
        list_measured_suites(),
        lambda subject: measure_table(settings, subject),
        lambda statistics: file_link(
            create_check_services(settings), "plots", publish_statistics(settings, statistics)
        ),
    )


def build_statistics_definitions(
    suites: Sequence[Suite],
    measure: Callable[[str], TableStatistics],
    publish_plots: PlotPublisher = lambda _: {},
) -> Definitions:
    """Build an hourly check for each table whose suite asks for statistics."""
    if not suites:
        return Definitions()
    specs = [
        AssetCheckSpec(
            NO_SUDDEN_CHANGE_CHECK,
            asset=suite_asset_key(suite),
            description="The last interval is similar to earlier ones. The figures are recorded as observations.",
        )
        for suite in suites
    ]
    checks = build_checks(
        "statistics",
        specs,
        lambda context, key: _statistics_result(context, key, measure, publish_plots),
    )
    return build_scheduled_checks(
        [checks],
        job=STATISTICS_JOB,
        description="Measure tables over time, and compare the last interval with earlier ones.",
        schedule="hourly_statistics",
        cron=HOURLY_CRON,
    )


def _statistics_result(
    context: AssetCheckExecutionContext,
    key: AssetCheckKey,
    measure: Callable[[str], TableStatistics],
    publish_plots: PlotPublisher,
) -> AssetCheckResult | None:
    statistics = measure("/".join(key.asset_key.path))
    if not statistics.last_figures:
        return build_unchecked_result(context.instance, key, "no interval is complete")
    context.op_execution_context.log_event(AssetObservation(key.asset_key, metadata=statistics.last_figures))
    return AssetCheckResult(
        passed=not statistics.changes,
        asset_key=key.asset_key,
        check_name=NO_SUDDEN_CHANGE_CHECK,
        severity=AssetCheckSeverity.WARN,
        description="; ".join(map(str, statistics.changes)) or None,
        metadata={
            **statistics.last_figures,
            "intervals": len(statistics.window_points),
            **publish_plots(statistics),
        },
    )
