"""Charts of measured curves. Each curve has named points and its own colour."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.engine.diagrams.axes import Axis, draw_frame, number_ticks
from penstock.engine.diagrams.svg import Drawing

CHART_WIDTH, CHART_HEIGHT = 760, 440
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 70, 24, 56, 46
CURVE_COLOURS = ("#1f6fb2", "#c0392b", "#2e8b57", "#8e44ad", "#e8a317")


@dataclass(frozen=True)
class CurvePoint:
    """A point of a curve and its label."""

    x: float
    y: float
    label: str = ""


@dataclass(frozen=True)
class Curve:
    """A named curve; its points go from left to right."""

    name: str
    points: Sequence[CurvePoint]


def render_curves(title: str, axis_titles: tuple[str, str], curve_list: Sequence[Curve]) -> str:
    """Return a chart of curves as SVG. `axis_titles` are the titles of the x axis and the y axis."""
    drawing = Drawing(CHART_WIDTH, CHART_HEIGHT, title)
    points = [point for curve in curve_list for point in curve.points]
    x_axis = Axis(*padded_range([point.x for point in points]), MARGIN_LEFT, CHART_WIDTH - MARGIN_RIGHT)
    y_axis = Axis(*padded_range([point.y for point in points]), CHART_HEIGHT - MARGIN_BOTTOM, MARGIN_TOP)
    for value in number_ticks(x_axis.low, x_axis.high):
        drawing.add_line((x_axis.to_px(value), y_axis.start_px), (x_axis.to_px(value), y_axis.end_px), "grid")
        drawing.add_text((x_axis.to_px(value), y_axis.start_px + 15), f"{value:g}", "middle")
    for value in number_ticks(y_axis.low, y_axis.high):
        drawing.add_line((x_axis.start_px, y_axis.to_px(value)), (x_axis.end_px, y_axis.to_px(value)), "grid")
        drawing.add_text((x_axis.start_px - 6, y_axis.to_px(value) + 4), f"{value:g}", "right")
    for number, curve in enumerate(curve_list):
        colour = CURVE_COLOURS[number % len(CURVE_COLOURS)]
        drawing.add_path(
            [(x_axis.to_px(point.x), y_axis.to_px(point.y)) for point in curve.points], "curve", colour
        )
        for point in curve.points:
            drawing.add_dot((x_axis.to_px(point.x), y_axis.to_px(point.y)), 3, "point", colour)
            if point.label:
                drawing.add_text(
                    (x_axis.to_px(point.x) + 6, y_axis.to_px(point.y) + 12), point.label, "label"
                )
        drawing.add_dot((MARGIN_LEFT + 6 + 190 * number, 38), 4, "point", colour)
        drawing.add_text((MARGIN_LEFT + 15 + 190 * number, 42), curve.name)
    draw_frame(drawing, x_axis, y_axis, axis_titles)
    drawing.add_text((MARGIN_LEFT, 20), title, "title")
    return drawing.to_svg()


def padded_range(values: Sequence[float]) -> tuple[float, float]:
    """Return an interval that contains all values, with a small margin."""
    low, high = min(values), max(values)
    room = (high - low or abs(high) or 1) * 0.04
    return low - room if low else 0.0, high + room
