"""Metrics of a table by interval, from its rows and the ledger of its stream."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.clock import now_ms
from penstock.core.names import explain_unknown_name
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.tables.table_paths import late_records_path, stage_ledger_path
from penstock.platform.lineage.suite_metadata import describe_columns
from penstock.platform.services.expectations import (
    load_all_suites,
    load_table_suites,
    page_path,
    plots_path,
    read_watermarks,
)
from penstock.platform.settings import Settings
from penstock.quality.errors import NoSuiteError, SuiteError
from penstock.quality.expectations.suite import Suite
from penstock.quality.expectations.table_checks import find_stage
from penstock.quality.statistics.change_detection import (
    MAX_PREVIOUS_INTERVALS,
    SuddenChange,
    detect_sudden_changes,
)
from penstock.quality.statistics.plots import publish_plots
from penstock.quality.statistics.recent_points import RecentIntervals, add_missed_share, read_last_points
from penstock.quality.statistics.series import StatisticsPoint, compute_fate_points, compute_window_points


@dataclass(frozen=True)
class TableStatistics:
    """A table's metrics by window end, its stream's metrics by batch time, and sudden changes."""

    subject: str
    window_points: list[StatisticsPoint]
    fate_points: list[StatisticsPoint]
    changes: list[SuddenChange]

    @property
    def last_figures(self) -> dict[str, float]:
        """The metrics of the last intervals."""
        return {
            name: value
            for points in (self.window_points, self.fate_points)
            for name, value in _last_figures(points).items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return the statistics as JSON data."""
        return {
            "subject": self.subject,
            "windows": [{"at_ms": point.at_ms, **point.figures} for point in self.window_points],
            "fates": [{"at_ms": point.at_ms, **point.figures} for point in self.fate_points],
            "changes": [vars(change) for change in self.changes],
        }


def list_measured_suites() -> tuple[Suite, ...]:
    """List the suites that define statistics."""
    return tuple(suite for suite, _ in load_table_suites().values() if suite.statistics is not None)


def measure_table(
    settings: Settings, subject: str, interval_count: int = MAX_PREVIOUS_INTERVALS + 1
) -> TableStatistics:
    """Compute the metrics of a table for at least `interval_count` intervals.

    Raises NoSuiteError if no suite defines statistics for the table, and SuiteError if its suite is invalid.
    """
    if (suite_error := load_all_suites().errors_by_subject.get(subject)) is not None:
        raise suite_error
    suite, plan = load_table_suites().get(subject, (None, None))
    if suite is None or plan is None or suite.statistics is None:
        measured_tables = [measured_suite.subject for measured_suite in list_measured_suites()]
        if suite is None:
            raise NoSuiteError(explain_unknown_name("suite with statistics for", subject, measured_tables))
        raise NoSuiteError(f"the suite of {subject!r} defines no statistics; add a block `statistics` to it")
    stage, statistics_settings = find_stage(plan, suite), suite.statistics
    refuse_unknown_columns(
        suite, statistics_settings.distinct, {column.name for column in describe_columns(suite, plan)}
    )
    watermark_ms = read_watermarks(settings, [plan.name])[plan.name]
    final_until_ms = None if watermark_ms is None else watermark_ms - stage.lateness
    values, clock_ms, warehouse = list(stage_value_columns(stage)), now_ms(), settings.warehouse_path

    def compute_windows(rows: pa.Table) -> list[StatisticsPoint]:
        return compute_window_points(
            rows,
            stage.key,
            values,
            statistics_settings.every_ms,
            final_until_ms,
            statistics_settings.distinct,
        )

    def compute_fates(rows: pa.Table) -> list[StatisticsPoint]:
        return compute_fate_points(rows, statistics_settings.every_ms, clock_ms)

    window_intervals = RecentIntervals(
        statistics_settings.every_ms, interval_count, clock_ms if final_until_ms is None else final_until_ms
    )
    window_points = read_last_points(warehouse / subject, "window_end", window_intervals, compute_windows)
    if stage in plan.source_stages:  # later stages read panes, which are never late
        window_points = add_missed_share(
            window_points, warehouse / late_records_path(plan, stage), statistics_settings.every_ms
        )
    clock_intervals = RecentIntervals(statistics_settings.every_ms, interval_count, clock_ms)
    fate_points = read_last_points(
        warehouse / source_ledger_path(plan, stage), "batch_clock", clock_intervals, compute_fates
    )
    changes = [
        change
        for points in (window_points, fate_points)
        for change in detect_sudden_changes(points, statistics_settings.sensitivity)
    ]
    return TableStatistics(subject, window_points, fate_points, changes)


def publish_statistics(settings: Settings, statistics: TableStatistics) -> Path:
    """Write the plots of a table's metrics next to the page of suites; return their path."""
    plots_file, page_file = plots_path(settings, statistics.subject), page_path(settings)
    groups = {
        "By window end": statistics.window_points,
        "By batch time": statistics.fate_points,
    }
    back_link = (
        f"{relpath(page_file, plots_file.parent)}#{statistics.subject}" if page_file.exists() else None
    )
    return publish_plots(plots_file, statistics.subject, groups, statistics.changes, back_link)


def refuse_unknown_columns(suite: Suite, distinct: Sequence[str], column_names: Collection[str]) -> None:
    """Raise SuiteError if `distinct` names a column that the table does not have."""
    unknown_columns = [name for name in distinct if name not in column_names]
    if unknown_columns:
        hint = f"Columns of {suite.subject}: {', '.join(sorted(column_names))}"
        problem = f"distinct has unknown columns: {', '.join(unknown_columns)}"
        raise SuiteError(suite.file, "statistics", problem, hint)


def source_ledger_path(plan: Plan, stage: Stage) -> str:
    """Return the path of the ledger with the outcome of a stage's records.

    A stage that reads records has its own ledger. A later stage uses the ledger of its first source stage.
    """
    while stage not in plan.source_stages:
        stage = next(iter(plan.upstream_of(stage)))
    return stage_ledger_path(plan, stage)


def _last_figures(points: list[StatisticsPoint]) -> dict[str, float]:
    return dict(points[-1].figures) if points else {}
