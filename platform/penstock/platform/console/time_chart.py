"""Small charts over time, for a page: curves with gaps where there is no figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from penstock.engine.diagrams.axes import Axis, format_tick_time, number_ticks, time_ticks
from penstock.engine.diagrams.embedded_drawing import EmbeddedDrawing

WIDTH, HEIGHT = 520, 190
LEFT, RIGHT, TOP, BOTTOM = 66.0, WIDTH - 12.0, 12.0, HEIGHT - 26.0
MAX_TIME_TICKS, MAX_VALUE_TICKS = 5, 4

ValueFormatter = Callable[[float | None], str]


@dataclass(frozen=True)
class ChartCurve:
    """A curve: its name, and a value for each time."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class TimeChart:
    """A drawn chart with its title, and the newest value of each curve."""

    title: str
    svg: str
    legend: Sequence[tuple[str, str]]
    is_empty: bool


def draw_time_chart(
    title: str, times_ms: Sequence[int], curves: Sequence[ChartCurve], format_value: ValueFormatter
) -> TimeChart:
    """Draw curves over the same times. The axis of values starts at zero."""
    values = [value for curve in curves for value in curve.values if value is not None]
    legend = [(curve.name, format_value(_find_newest(curve.values))) for curve in curves]
    if not values:
        return TimeChart(title, "", legend, is_empty=True)
    drawing = EmbeddedDrawing(
        WIDTH, HEIGHT, f"{title}: {', '.join(f'{name} {text}' for name, text in legend)}"
    )
    x_axis = Axis(times_ms[0], times_ms[-1], LEFT, RIGHT)
    y_axis = Axis(min(0, *values), max(*values, 0) * 1.08 or 1, BOTTOM, TOP)
    _draw_axes(drawing, x_axis, y_axis, format_value)
    for number, curve in enumerate(curves, 1):
        for points in _iter_runs(times_ms, curve.values, x_axis, y_axis):
            drawing.add_path(points, f"curve curve-{number}")
            if len(points) == 1:
                drawing.add_dot(points[0], 2.2, f"point point-{number}")
    _draw_tips(drawing, times_ms, curves, x_axis, format_value)
    return TimeChart(title, drawing.to_svg(), legend, is_empty=False)


def _draw_axes(drawing: EmbeddedDrawing, x_axis: Axis, y_axis: Axis, format_value: ValueFormatter) -> None:
    for value in number_ticks(y_axis.low, y_axis.high, MAX_VALUE_TICKS):
        y = y_axis.to_px(value)
        drawing.add_line((LEFT, y), (RIGHT, y), "grid")
        drawing.add_text((LEFT - 7, y + 4), format_value(value), "right")
    for time_ms in time_ticks(x_axis.low, x_axis.high, MAX_TIME_TICKS):
        x = x_axis.to_px(time_ms)
        text = format_tick_time(time_ms, x_axis.high - x_axis.low)
        drawing.add_time((x, BOTTOM + 17), text, "middle", time_ms)
    drawing.add_line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")


def _iter_runs(
    times_ms: Sequence[int], values: Sequence[float | None], x_axis: Axis, y_axis: Axis
) -> list[list[tuple[float, float]]]:
    """Return the points of each part of a curve without a gap."""
    pairs = zip(times_ms, values, strict=True)
    return [
        [(x_axis.to_px(time_ms), y_axis.to_px(value)) for time_ms, value in run if value is not None]
        for has_value, run in groupby(pairs, key=lambda pair: pair[1] is not None)
        if has_value
    ]


def _draw_tips(
    drawing: EmbeddedDrawing,
    times_ms: Sequence[int],
    curves: Sequence[ChartCurve],
    x_axis: Axis,
    format_value: ValueFormatter,
) -> None:
    """Draw an unseen column for each time, with the values there as its tip."""
    width = (RIGHT - LEFT) / max(len(times_ms) - 1, 1)
    for number, time_ms in enumerate(times_ms):
        texts = [f"{curve.name} {format_value(curve.values[number])}" for curve in curves]
        left = min(max(x_axis.to_px(time_ms) - width / 2, LEFT), RIGHT - width)
        drawing.add_column((left, TOP), (width, BOTTOM - TOP), "\n".join(texts), time_ms)


def _find_newest(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
