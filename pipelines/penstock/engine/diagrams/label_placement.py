"""Where a pane's value is written: above a bar, beside a dot, where watermark, records and other bars leave room.

A bar says by its length where its window is, so its text stands in its middle as long as that is clear.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.engine.diagrams.svg import PixelPosition

LETTER_WIDTH, TEXT_HEIGHT = 5.2, 8.0
MIN_BAR_TEXT_WIDTH = 26.0
DOT_TEXT_GAP_X, DOT_TEXT_GAP_ABOVE, BAR_TEXT_GAP_ABOVE, DOT_TEXT_GAP_BELOW, BAR_TEXT_GAP_BELOW = (
    6.0,
    6.0,
    3.0,
    14.0,
    10.5,
)
BAR_TEXT_OFFSETS = (0.0, 0.5, -0.5, 1.0, -1.0)
"""The positions of a label along its bar: the middle, the ends and between."""
WATERMARK_PENALTY, BAR_PENALTY = 6, 8
"""How many covered records weigh as much as the watermark, and as a bar, through a label."""
BarSpan = tuple[float, float, float]
"""A horizontal segment: start, end and height."""


@dataclass(frozen=True)
class Label:
    """A label: its text middle, baseline and length."""

    middle: float
    baseline: float
    length: float

    @property
    def ends(self) -> tuple[float, float]:
        """The horizontal start and end of the label."""
        return self.middle - self.length / 2, self.middle + self.length / 2

    def overlaps(self, other: "Label") -> bool:
        """Return whether two labels overlap."""
        overlaps_across = abs(self.middle - other.middle) < (self.length + other.length) / 2
        return overlaps_across and abs(self.baseline - other.baseline) < TEXT_HEIGHT + 2

    def is_crossed_by(self, polyline: Sequence[PixelPosition]) -> bool:
        """Return whether a step path crosses the label."""
        left, right = self.ends
        return any(
            min(x, u) < right
            and max(x, u) > left
            and min(y, v) < self.baseline
            and max(y, v) > self.baseline - TEXT_HEIGHT
            for (x, y), (u, v) in pairwise(polyline)
        )

    def count_covered(self, dots: Sequence[PixelPosition]) -> int:
        """Count the dots that the label covers."""
        left, right = self.ends
        return sum(left < x < right and self.baseline - TEXT_HEIGHT < y < self.baseline for x, y in dots)

    def is_struck_by(self, bars: Sequence[BarSpan]) -> bool:
        """Return whether a bar crosses the label."""
        left, right = self.ends
        return any(
            begin < right and end > left and self.baseline - TEXT_HEIGHT - 1 < y < self.baseline + 1
            for begin, end, y in bars
        )


@dataclass
class LabelPlacer:
    """What is written already between two edges of a picture and above its floor, and what is better kept clear."""

    edges: tuple[float, float]
    watermark_line: Sequence[PixelPosition]
    floor_y: float = float("inf")
    bars: Sequence[BarSpan] = ()
    dots: Sequence[PixelPosition] = ()
    placed_labels: list[Label] = field(default_factory=list)

    def place_dot_label(self, dot: PixelPosition, text: str) -> Label | None:
        """Return where a dot's text goes, off the way where that can be; None where others leave no room."""
        (x, y), length = dot, LETTER_WIDTH * len(text)
        shift = DOT_TEXT_GAP_X / 2 + length / 2
        candidates = (
            (x, y - DOT_TEXT_GAP_ABOVE),
            (x - shift, y - DOT_TEXT_GAP_ABOVE),
            (x + shift, y + DOT_TEXT_GAP_BELOW),
        )
        return self._place_best(candidates, length)

    def place_bar_label(self, left: float, right: float, y: float, text: str) -> Label | None:
        """Return where a bar's text goes; None for one that is too short for it, or where others are."""
        length = LETTER_WIDTH * len(text)
        if length > max(right - left - 4, MIN_BAR_TEXT_WIDTH):
            return None
        middle, slack = (left + right) / 2, max((right - left - 8 - length) / 2, 0)
        above, below = (
            [(middle + part * slack, y + off) for part in BAR_TEXT_OFFSETS]
            for off in (-BAR_TEXT_GAP_ABOVE, BAR_TEXT_GAP_BELOW)
        )
        return self._place_best(above, length, fallbacks=below)

    def _place_best(
        self, candidates: Sequence[PixelPosition], length: float, fallbacks: Sequence[PixelPosition] = ()
    ) -> Label | None:
        """Write at the clearest of some places, or at a spare one that is clear of everything."""
        clear_fallbacks = (
            label for label in self._iter_free_labels(fallbacks, length) if not self._penalty(label)
        )
        best = min(
            [*self._iter_free_labels(candidates, length), *clear_fallbacks], key=self._penalty, default=None
        )
        if best is not None:
            self.placed_labels.append(best)
        return best

    def _penalty(self, label: Label) -> int:
        """Return the penalty of a position; 0 is clear of everything."""
        is_struck, is_crossed = label.is_struck_by(self.bars), label.is_crossed_by(self.watermark_line)
        return BAR_PENALTY * is_struck + WATERMARK_PENALTY * is_crossed + label.count_covered(self.dots)

    def _iter_free_labels(self, candidates: Sequence[PixelPosition], length: float) -> Iterator[Label]:
        low, high = (self.edges[0] + length / 2, self.edges[1] - length / 2)
        for x, baseline in candidates:
            label = Label(min(max(x, low), high), baseline, length)
            if baseline < self.floor_y and not any(label.overlaps(other) for other in self.placed_labels):
                yield label
