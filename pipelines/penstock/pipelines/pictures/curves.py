"""Curves over numbers, for what is measured: each has points with a name, and a colour of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.pipelines.pictures.axes import Axis, frame, round_numbers
from penstock.pipelines.pictures.svg import Drawing

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 56, 46
COLOURS = ("#1f6fb2", "#c0392b", "#2e8b57", "#8e44ad", "#e8a317")


@dataclass(frozen=True)
class Point:
    """A place on a curve, and what is written beside it."""

    x: float
    y: float
    said: str = ""


@dataclass(frozen=True)
class Curve:
    """Points from left to right, under a name."""

    name: str
    points: Sequence[Point]


def curves(title: str, words: tuple[str, str], drawn: Sequence[Curve]) -> str:
    """Return curves in one picture as SVG; `words` name what is across and what is upwards."""
    drawing = Drawing(WIDTH, HEIGHT, title)
    points = [point for curve in drawn for point in curve.points]
    across = Axis(*span([point.x for point in points]), LEFT, WIDTH - RIGHT)
    up = Axis(*span([point.y for point in points]), HEIGHT - BOTTOM, TOP)
    for value in round_numbers(across.low, across.high):
        drawing.line((across.at(value), up.begin), (across.at(value), up.end), "grid")
        drawing.words((across.at(value), up.begin + 15), f"{value:g}", "middle")
    for value in round_numbers(up.low, up.high):
        drawing.line((across.begin, up.at(value)), (across.end, up.at(value)), "grid")
        drawing.words((across.begin - 6, up.at(value) + 4), f"{value:g}", "right")
    for number, curve in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        drawing.path([(across.at(point.x), up.at(point.y)) for point in curve.points], "curve", colour)
        for point in curve.points:
            drawing.dot((across.at(point.x), up.at(point.y)), 3, "point", colour)
            if point.said:
                drawing.words((across.at(point.x) + 6, up.at(point.y) + 12), point.said, "label")
        drawing.dot((LEFT + 6 + 190 * number, 38), 4, "point", colour)
        drawing.words((LEFT + 15 + 190 * number, 42), curve.name)
    frame(drawing, across, up, words)
    drawing.words((LEFT, 20), title, "title")
    return drawing.svg()


def span(values: Sequence[float]) -> tuple[float, float]:
    """Return a stretch that holds all values, with a little room."""
    low, high = min(values), max(values)
    room = (high - low or abs(high) or 1) * 0.04
    return low - room if low else 0.0, high + room
