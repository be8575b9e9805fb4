"""Statistics of a table over time, from its rows and the ledger of its stream."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.clock import now_ms
from penstock.engine.plan import Plan, Stage
from penstock.engine.plan.columns import stage_value_columns
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
    """Figures of a table by the time of its windows, of its stream by the clock, and what changed suddenly."""

    subject: str
    window_points: list[StatisticsPoint]
    fate_points: list[StatisticsPoint]
    changes: list[SuddenChange]

    @property
    def last_figures(self) -> dict[str, float]:
        """The figures of the last stretches."""
        return {
            name: value
            for points in (self.window_points, self.fate_points)
            for name, value in _last_figures(points).items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "subject": self.subject,
            "windows": [{"at_ms": point.at_ms, **point.figures} for point in self.window_points],
            "fates": [{"at_ms": point.at_ms, **point.figures} for point in self.fate_points],
            "changes": [vars(change) for change in self.changes],
        }


def list_measured_suites() -> tuple[Suite, ...]:
    """The suites that ask for statistics."""
    return tuple(suite for suite, _ in load_table_suites().values() if suite.statistics is not None)


def measure_table(
    settings: Settings, subject: str, interval_count: int = MAX_PREVIOUS_INTERVALS + 1
) -> TableStatistics:
    """Measure the last stretches of a table, so many at least.

    NoSuiteError where no suite asks for statistics; SuiteError where the suite that may ask cannot be used.
    """
    if (suite_error := load_all_suites().errors_by_subject.get(subject)) is not None:
        raise suite_error
    suite, plan = load_table_suites().get(subject, (None, None))
    if suite is None or plan is None or suite.statistics is None:
        measured_tables = (
            ", ".join(measured_suite.subject for measured_suite in list_measured_suites()) or "none yet"
        )
        raise NoSuiteError(
            f"no suite asks for statistics of {subject!r}; there are those of {measured_tables}"
        )
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
    if stage in plan.source_stages:  # later stages read panes, and miss no record
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
    """Write the plots of a table's figures beside the page of what is expected, and return where they are."""
    plots_file, page_file = plots_path(settings, statistics.subject), page_path(settings)
    groups = {
        "By the time at which windows end": statistics.window_points,
        "By the clock of batches": statistics.fate_points,
    }
    back_link = (
        f"{relpath(page_file, plots_file.parent)}#{statistics.subject}" if page_file.exists() else None
    )
    return publish_plots(plots_file, statistics.subject, groups, statistics.changes, back_link)


def refuse_unknown_columns(suite: Suite, distinct: Sequence[str], column_names: Collection[str]) -> None:
    """Raise SuiteError where different values are to be counted of what is no column of the table."""
    unknown_columns = [name for name in distinct if name not in column_names]
    if unknown_columns:
        hint = f"Name columns of {suite.subject}: {', '.join(sorted(column_names))}"
        raise SuiteError(suite.file, "statistics", f"distinct names {', '.join(unknown_columns)}", hint)


def source_ledger_path(plan: Plan, stage: Stage) -> str:
    """Return where it is told what became of the records that a stage is made from.

    A stage that reads records has a ledger of its own; behind another lies the first one that it goes back to.
    """
    while stage not in plan.source_stages:
        stage = next(iter(plan.upstream_of(stage)))
    return stage_ledger_path(plan, stage)


def _last_figures(points: list[StatisticsPoint]) -> dict[str, float]:
    return dict(points[-1].figures) if points else {}
