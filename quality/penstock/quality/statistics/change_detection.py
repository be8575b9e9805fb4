"""Detects figures of the last interval that differ suddenly from earlier intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from penstock.quality.statistics.series import StatisticsPoint

MIN_PREVIOUS_INTERVALS = 8
"""The minimum number of earlier intervals for a verdict."""

MAX_PREVIOUS_INTERVALS = 168
"""The maximum number of earlier intervals that are compared."""

MIN_SPREAD_OF_MEDIAN, MIN_SPREAD_OF_SHARE = 0.05, 0.01
"""The minimum deviation: a share of the median, and an absolute value for figures that are shares."""

MAD_TO_STANDARD_DEVIATION = 1.4826
"""The ratio of the standard deviation to the median absolute deviation of normal values."""


@dataclass(frozen=True)
class SuddenChange:
    """A figure of the last interval that differs from the median of earlier intervals, in deviations."""

    figure: str
    at_ms: int
    value: float
    usual: float
    deviations: float

    def __str__(self) -> str:
        return f"{self.figure} is {self.value:g}, usually {self.usual:g} ({self.deviations:.1f} deviations)"


def detect_sudden_changes(points: Sequence[StatisticsPoint], sensitivity: float) -> list[SuddenChange]:
    """Return the figures of the last point that deviate more than `sensitivity` from earlier points.

    Uses the median and the median absolute deviation, so one outlier does not make the next ones look usual.
    """
    previous_points, last_point = points[-MAX_PREVIOUS_INTERVALS - 1 : -1], points[-1:]
    if len(previous_points) < MIN_PREVIOUS_INTERVALS or not last_point:
        return []
    changes = []
    for figure, value in last_point[0].figures.items():
        series = [point.figures[figure] for point in previous_points if figure in point.figures]
        if len(series) >= MIN_PREVIOUS_INTERVALS:
            median_value = median(series)
            deviations = abs(value - median_value) / compute_usual_spread(figure, series, median_value)
            if deviations > sensitivity:
                changes.append(SuddenChange(figure, last_point[0].at_ms, value, median_value, deviations))
    return sorted(changes, key=lambda change: -change.deviations)


def compute_usual_spread(figure: str, series: Sequence[float], median_value: float) -> float:
    """Return the usual deviation from the median; always above 0."""
    spread = MAD_TO_STANDARD_DEVIATION * median(abs(value - median_value) for value in series)
    is_share = figure.startswith(("share_", "null_"))
    return max(spread, MIN_SPREAD_OF_MEDIAN * abs(median_value), MIN_SPREAD_OF_SHARE if is_share else 1.0)
