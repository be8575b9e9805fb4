"""Where a pane's value is written: above a bar, beside a dot on a side that the watermark leaves free.

A bar says by its length where its window is, so its text stands in its middle, also where the watermark goes on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.pipelines.pictures.svg import Point

LETTER, HEIGHT = 5.2, 8.0
ROOM_FOR_TEXT = 26.0
BESIDE_DOT, ABOVE_DOT, ABOVE_BAR, BELOW_DOT = 6.0, 6.0, 3.0, 14.0


@dataclass(frozen=True)
class Label:
    """A text by its middle, its foot and its length."""

    middle: float
    foot: float
    length: float

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends."""
        return self.middle - self.length / 2, self.middle + self.length / 2

    def meets(self, other: "Label") -> bool:
        """Tell whether two would be written over one another."""
        near = abs(self.middle - other.middle) < (self.length + other.length) / 2
        return near and abs(self.foot - other.foot) < HEIGHT + 2

    def is_crossed(self, way: Sequence[Point]) -> bool:
        """Tell whether a way of level and upright steps goes through it."""
        left, right = self.ends
        return any(
            min(x, u) < right
            and max(x, u) > left
            and min(y, v) < self.foot
            and max(y, v) > self.foot - HEIGHT
            for (x, y), (u, v) in pairwise(way)
        )


@dataclass
class Labels:
    """What is written already between two edges of a picture, and the way that is better kept clear."""

    edges: tuple[float, float]
    way: Sequence[Point]
    written: list[Label] = field(default_factory=list)

    def of_dot(self, at: Point, text: str) -> Label | None:
        """Return where a dot's text goes, off the way where that can be; None where others leave no room."""
        (x, y), length = at, LETTER * len(text)
        aside = BESIDE_DOT / 2 + length / 2
        places = (x, y - ABOVE_DOT), (x - aside, y - ABOVE_DOT), (x + aside, y + BELOW_DOT)
        return self._first(places, length)

    def of_bar(self, left: float, right: float, y: float, text: str) -> Label | None:
        """Return where a bar's text goes; None for one that is too short for it, or where others are."""
        length = LETTER * len(text)
        if length > max(right - left - 4, ROOM_FOR_TEXT):
            return None
        return self._first([((left + right) / 2, y - ABOVE_BAR)], length)

    def _first(self, places: Sequence[Point], length: float) -> Label | None:
        free = list(self._free(places, length))
        best = sorted(free, key=lambda label: label.is_crossed(self.way))[:1]
        self.written += best
        return best[0] if best else None

    def _free(self, places: Sequence[Point], length: float) -> Iterator[Label]:
        low, high = (self.edges[0] + length / 2, self.edges[1] - length / 2)
        for x, foot in places:
            label = Label(min(max(x, low), high), foot, length)
            if not any(label.meets(other) for other in self.written):
                yield label
