"""Whether the last stretch is unlike those before it: measured in how far these usually are from their middle."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from penstock.quality.statistics.series import StatisticsPoint

MIN_PREVIOUS_INTERVALS = 8
"""Stretches that must lie before one that is judged: fewer tell nothing of what is usual."""

MAX_PREVIOUS_INTERVALS = 168
"""How many stretches are looked back at most."""

MIN_SPREAD_OF_MEDIAN, MIN_SPREAD_OF_SHARE = 0.05, 0.01
"""What is never unusual: a twentieth of the middle, or a hundredth where a figure is a share."""

MAD_TO_STANDARD_DEVIATION = 1.4826
"""By this the median distance from the median is a standard deviation, where values are normal."""


@dataclass(frozen=True)
class SuddenChange:
    """A figure of the last stretch that is unlike those before: by how many deviations from their middle."""

    figure: str
    at_ms: int
    value: float
    usual: float
    deviations: float

    def __str__(self) -> str:
        return f"{self.figure} is {self.value:g}, and usually {self.usual:g}: {self.deviations:.1f} deviations away"


def detect_sudden_changes(points: Sequence[StatisticsPoint], sensitivity: float) -> list[SuddenChange]:
    """Return the figures of the last point that are more than so many deviations from the middle of those before.

    Median and median distance are used, so that one odd stretch does not make the next ones look usual.
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
    """Return how far values usually are from their middle; never nothing."""
    spread = MAD_TO_STANDARD_DEVIATION * median(abs(value - median_value) for value in series)
    is_share = figure.startswith(("share_", "null_"))
    return max(spread, MIN_SPREAD_OF_MEDIAN * abs(median_value), MIN_SPREAD_OF_SHARE if is_share else 1.0)
