"""Statistics of a table over time, from its rows and the ledger of its stream."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.pipelines.plan import Plan, Stage
from penstock.pipelines.plan.columns import values_of
from penstock.pipelines.tables.places import late_of, ledger_of
from penstock.platform.clock import now_ms
from penstock.platform.described import columns_of
from penstock.platform.expectations import all_suites, page_of, plots_of, table_suites, watermarks
from penstock.platform.settings import Settings
from penstock.quality.errors import NoSuiteError, SuiteError
from penstock.quality.expectations.at_rest import stage_of
from penstock.quality.expectations.suite import Suite
from penstock.quality.statistics.change import LOOKED_BACK, Change, sudden
from penstock.quality.statistics.plots import publish_plots
from penstock.quality.statistics.recent import Stretches, last_points, with_missed
from penstock.quality.statistics.series import Point, of_fates, of_windows


@dataclass(frozen=True)
class Statistics:
    """Figures of a table by the time of its windows, of its stream by the clock, and what changed suddenly."""

    about: str
    windows: list[Point]
    fates: list[Point]
    changes: list[Change]

    @property
    def last(self) -> dict[str, float]:
        """The figures of the last stretches."""
        return {name: value for points in (self.windows, self.fates) for name, value in _last(points).items()}

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "about": self.about,
            "windows": [{"at_ms": point.at_ms, **point.figures} for point in self.windows],
            "fates": [{"at_ms": point.at_ms, **point.figures} for point in self.fates],
            "changes": [vars(change) for change in self.changes],
        }


def measured() -> tuple[Suite, ...]:
    """The suites that ask for statistics."""
    return tuple(suite for suite, _ in table_suites().values() if suite.statistics is not None)


def statistics_of(settings: Settings, about: str, stretches: int = LOOKED_BACK + 1) -> Statistics:
    """Measure the last stretches of a table, so many at least.

    NoSuiteError where no suite asks for statistics; SuiteError where the suite that may ask cannot be used.
    """
    if (broken := all_suites().broken.get(about)) is not None:
        raise broken
    suite, plan = table_suites().get(about, (None, None))
    if suite is None or plan is None or suite.statistics is None:
        known = ", ".join(one.about for one in measured()) or "none yet"
        raise NoSuiteError(f"no suite asks for statistics of {about!r}; there are those of {known}")
    stage, asked = stage_of(plan, suite), suite.statistics
    refuse_strange_columns(suite, asked.distinct, {column.name for column in columns_of(suite, plan)})
    mark = watermarks(settings, [plan.name])[plan.name]
    final = None if mark is None else mark - stage.lateness
    values, now, warehouse = list(values_of(stage)), now_ms(), settings.tables

    def told_by_windows(rows: pa.Table) -> list[Point]:
        return of_windows(rows, stage.key, values, asked.every_ms, final, asked.distinct)

    def told_by_ledger(rows: pa.Table) -> list[Point]:
        return of_fates(rows, asked.every_ms, now)

    ends = Stretches(asked.every_ms, stretches, now if final is None else final)
    windows = last_points(warehouse / about, "window_end", ends, told_by_windows)
    if stage in plan.firsts:  # later stages read panes, and miss no record
        windows = with_missed(windows, warehouse / late_of(plan, stage), asked.every_ms)
    clocks = Stretches(asked.every_ms, stretches, now)
    fates = last_points(warehouse / ledger_behind(plan, stage), "batch_clock", clocks, told_by_ledger)
    changes = [change for points in (windows, fates) for change in sudden(points, asked.sensitivity)]
    return Statistics(about, windows, fates, changes)


def publish_statistics(settings: Settings, found: Statistics) -> Path:
    """Write the plots of a table's figures beside the page of what is expected, and return where they are."""
    file, page = plots_of(settings, found.about), page_of(settings)
    groups = {
        "By the time at which windows end": found.windows,
        "By the clock of batches": found.fates,
    }
    back = f"{relpath(page, file.parent)}#{found.about}" if page.exists() else None
    return publish_plots(file, found.about, groups, found.changes, back)


def refuse_strange_columns(suite: Suite, distinct: Sequence[str], known: Collection[str]) -> None:
    """Raise SuiteError where different values are to be counted of what is no column of the table."""
    strange = [name for name in distinct if name not in known]
    if strange:
        fix = f"Name columns of {suite.about}: {', '.join(sorted(known))}"
        raise SuiteError(suite.file, "statistics", f"distinct names {', '.join(strange)}", fix)


def ledger_behind(plan: Plan, stage: Stage) -> str:
    """Return where it is told what became of the records that a stage is made from.

    A stage that reads records has a ledger of its own; behind another lies the first one that it goes back to.
    """
    while stage not in plan.firsts:
        stage = next(iter(plan.feeding(stage)))
    return ledger_of(plan, stage)


def _last(points: list[Point]) -> dict[str, float]:
    return dict(points[-1].figures) if points else {}
