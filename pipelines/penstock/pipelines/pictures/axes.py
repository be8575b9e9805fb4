"""From times and numbers to places on a picture, and where marks stand on its edges."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.pipelines.pictures.svg import Drawing

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
STEPS = (
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)),
    *(DAY * n for n in (1, 2, 7)),
)


@dataclass(frozen=True)
class Axis:
    """A stretch of values on a stretch of pixels; either may run backwards."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value; one outside stands at the nearer end."""
        share = (min(max(value, self.low), self.high) - self.low) / ((self.high - self.low) or 1)
        return self.begin + share * (self.end - self.begin)

    def holds(self, value: float) -> bool:
        """Tell whether a value lies on it."""
        return self.low <= value <= self.high


def moments(low: float, high: float, most: int = 9) -> list[int]:
    """Return round moments between two, so that they are not too many."""
    step = next((step for step in STEPS if (high - low) / step <= most), STEPS[-1])
    first = -(-int(low) // step) * step
    return list(range(first, int(high) + 1, step))


def round_numbers(low: float, high: float, most: int = 8) -> Iterator[float]:
    """Yield round numbers between two, so that they are not too many."""
    size = 10.0 ** (len(str(int(max(high - low, 1)))) - 3)
    step = next(
        s for k in range(8) for s in (size * 10**k * f for f in (1, 2, 5)) if (high - low) / s <= most
    )
    count = int(low // step)
    while (value := count * step) <= high:
        if value >= low:
            yield value
        count += 1


def clock(moment: float, span: float) -> str:
    """Write a moment as short as its neighbours allow."""
    told = datetime.fromtimestamp(moment / 1000, UTC)
    return told.strftime("%d %b %H:%M" if span > DAY else "%H:%M" if span > 20 * MINUTE else "%H:%M:%S")


def frame(drawing: Drawing, across: Axis, up: Axis, words: tuple[str, str]) -> None:
    """Draw the two edges with what they are called."""
    drawing.line((across.begin, up.begin), (across.end, up.begin), "axis")
    drawing.line((across.begin, up.begin), (across.begin, up.end), "axis")
    drawing.words(((across.begin + across.end) / 2, up.begin + 34), words[0], "middle")
    drawing.upright((14, (up.begin + up.end) / 2), words[1])


def time_marks(drawing: Drawing, across: Axis, up: Axis) -> None:
    """Mark round moments on both edges, with lines through the picture."""
    for moment in moments(across.low, across.high):
        x = across.at(moment)
        drawing.line((x, up.begin), (x, up.end), "grid")
        drawing.words((x, up.begin + 15), clock(moment, across.high - across.low), "middle")
    for moment in moments(up.low, up.high):
        y = up.at(moment)
        drawing.line((across.begin, y), (across.end, y), "grid")
        drawing.words((across.begin - 6, y + 4), clock(moment, up.high - up.low), "right")
