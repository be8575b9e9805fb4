"""Whether the last stretch is unlike those before it: measured in how far these usually are from their middle."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from penstock.quality.statistics.series import Point

AT_LEAST = 8
"""Stretches that must lie before one that is judged: fewer tell nothing of what is usual."""

LOOKED_BACK = 168
"""How many stretches are looked back at most."""

OF_MIDDLE, OF_SHARE = 0.05, 0.01
"""What is never unusual: a twentieth of the middle, or a hundredth where a figure is a share."""

TO_DEVIATION = 1.4826
"""By this the median distance from the median is a standard deviation, where values are normal."""


@dataclass(frozen=True)
class Change:
    """A figure of the last stretch that is unlike those before: by how many deviations from their middle."""

    figure: str
    at_ms: int
    value: float
    usual: float
    deviations: float

    def __str__(self) -> str:
        return f"{self.figure} is {self.value:g}, and usually {self.usual:g}: {self.deviations:.1f} deviations away"


def sudden(points: Sequence[Point], sensitivity: float) -> list[Change]:
    """Return the figures of the last point that are more than so many deviations from the middle of those before.

    Median and median distance are used, so that one odd stretch does not make the next ones look usual.
    """
    before, last = points[-LOOKED_BACK - 1 : -1], points[-1:]
    if len(before) < AT_LEAST or not last:
        return []
    found = []
    for figure, value in last[0].figures.items():
        series = [point.figures[figure] for point in before if figure in point.figures]
        if len(series) >= AT_LEAST:
            middle = median(series)
            distance = abs(value - middle) / usual_distance(figure, series, middle)
            if distance > sensitivity:
                found.append(Change(figure, last[0].at_ms, value, middle, distance))
    return sorted(found, key=lambda change: -change.deviations)


def usual_distance(figure: str, series: Sequence[float], middle: float) -> float:
    """Return how far values usually are from their middle; never nothing."""
    spread = TO_DEVIATION * median(abs(value - middle) for value in series)
    is_share = figure.startswith(("share_", "null_"))
    return max(spread, OF_MIDDLE * abs(middle), OF_SHARE if is_share else 1.0)
