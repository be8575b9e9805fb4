"""Where a pane's value is written: above a bar, beside a dot, where watermark, records and other bars leave room.

A bar says by its length where its window is, so its text stands in its middle as long as that is clear.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.pipelines.pictures.svg import Point

LETTER, HEIGHT = 5.2, 8.0
ROOM_FOR_TEXT = 26.0
BESIDE_DOT, ABOVE_DOT, ABOVE_BAR, BELOW_DOT, BELOW_BAR = 6.0, 6.0, 3.0, 14.0, 10.5
ALONG_BAR = (0.0, 0.5, -0.5, 1.0, -1.0)
"""Where along a bar its text may stand: in the middle, at an end, or between."""
CROSSED, STRUCK = 6, 8
"""How many covered records are as bad as the watermark through a text, and as a bar through it."""
Bar = tuple[float, float, float]
"""From where to where, and how high."""


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

    def covers(self, dots: Sequence[Point]) -> int:
        """Count the dots that it would be written over."""
        left, right = self.ends
        return sum(left < x < right and self.foot - HEIGHT < y < self.foot for x, y in dots)

    def is_struck(self, bars: Sequence[Bar]) -> bool:
        """Tell whether a bar goes through it."""
        left, right = self.ends
        return any(
            begin < right and end > left and self.foot - HEIGHT - 1 < y < self.foot + 1
            for begin, end, y in bars
        )


@dataclass
class Labels:
    """What is written already between two edges of a picture and above its floor, and what is better kept clear."""

    edges: tuple[float, float]
    way: Sequence[Point]
    floor: float = float("inf")
    bars: Sequence[Bar] = ()
    dots: Sequence[Point] = ()
    written: list[Label] = field(default_factory=list)

    def of_dot(self, at: Point, text: str) -> Label | None:
        """Return where a dot's text goes, off the way where that can be; None where others leave no room."""
        (x, y), length = at, LETTER * len(text)
        aside = BESIDE_DOT / 2 + length / 2
        places = (x, y - ABOVE_DOT), (x - aside, y - ABOVE_DOT), (x + aside, y + BELOW_DOT)
        return self._best(places, length)

    def of_bar(self, left: float, right: float, y: float, text: str) -> Label | None:
        """Return where a bar's text goes; None for one that is too short for it, or where others are."""
        length = LETTER * len(text)
        if length > max(right - left - 4, ROOM_FOR_TEXT):
            return None
        middle, play = (left + right) / 2, max((right - left - 8 - length) / 2, 0)
        above, below = (
            [(middle + part * play, y + off) for part in ALONG_BAR] for off in (-ABOVE_BAR, BELOW_BAR)
        )
        return self._best(above, length, spare=below)

    def _best(self, places: Sequence[Point], length: float, spare: Sequence[Point] = ()) -> Label | None:
        """Write at the clearest of some places, or at a spare one that is clear of everything."""
        clear = (label for label in self._free(spare, length) if not self._unclear(label))
        best = min([*self._free(places, length), *clear], key=self._unclear, default=None)
        if best is not None:
            self.written.append(best)
        return best

    def _unclear(self, label: Label) -> int:
        """How hard it would be to read there."""
        struck, crossed = label.is_struck(self.bars), label.is_crossed(self.way)
        return STRUCK * struck + CROSSED * crossed + label.covers(self.dots)

    def _free(self, places: Sequence[Point], length: float) -> Iterator[Label]:
        low, high = (self.edges[0] + length / 2, self.edges[1] - length / 2)
        for x, foot in places:
            label = Label(min(max(x, low), high), foot, length)
            if foot < self.floor and not any(label.meets(other) for other in self.written):
                yield label
