"""Axes of diagrams: conversion of times and numbers to pixels, and ticks."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.engine.diagrams.svg import Drawing

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
TICK_STEPS_MS = (
    *(SECOND_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * n for n in (1, 2, 3, 6, 12)),
    *(DAY_MS * n for n in (1, 2, 7)),
)


@dataclass(frozen=True)
class Axis:
    """Maps an interval of values to an interval of pixels. Either may be reversed."""

    low: float
    high: float
    start_px: float
    end_px: float

    def to_px(self, value: float) -> float:
        """Return the pixel position of a value. Values outside are clamped."""
        share = (min(max(value, self.low), self.high) - self.low) / ((self.high - self.low) or 1)
        return self.start_px + share * (self.end_px - self.start_px)

    def contains(self, value: float) -> bool:
        """Return whether the value is on the axis."""
        return self.low <= value <= self.high


def time_ticks(low: float, high: float, max_ticks: int = 9) -> list[int]:
    """Return at most `max_ticks` round times between two times."""
    step = next((step for step in TICK_STEPS_MS if (high - low) / step <= max_ticks), TICK_STEPS_MS[-1])
    first = -(-int(low) // step) * step
    return list(range(first, int(high) + 1, step))


def number_ticks(low: float, high: float, max_ticks: int = 8) -> Iterator[float]:
    """Yield at most `max_ticks` round numbers between two numbers."""
    size = 10.0 ** (len(str(int(max(high - low, 1)))) - 3)
    step = next(
        s for k in range(8) for s in (size * 10**k * f for f in (1, 2, 5)) if (high - low) / s <= max_ticks
    )
    count = int(low // step)
    while (value := count * step) <= high:
        if value >= low:
            yield value
        count += 1


def format_tick_time(time_ms: float, span_ms: float) -> str:
    """Format a time with the precision that the span needs."""
    tick_time = datetime.fromtimestamp(time_ms / 1000, UTC)
    return tick_time.strftime(
        "%d %b %H:%M" if span_ms > DAY_MS else "%H:%M" if span_ms > 20 * MINUTE_MS else "%H:%M:%S"
    )


def draw_frame(drawing: Drawing, x_axis: Axis, y_axis: Axis, axis_titles: tuple[str, str]) -> None:
    """Draw both axes with their titles."""
    drawing.add_line((x_axis.start_px, y_axis.start_px), (x_axis.end_px, y_axis.start_px), "axis")
    drawing.add_line((x_axis.start_px, y_axis.start_px), (x_axis.start_px, y_axis.end_px), "axis")
    drawing.add_text(((x_axis.start_px + x_axis.end_px) / 2, y_axis.start_px + 34), axis_titles[0], "middle")
    drawing.add_vertical_text((14, (y_axis.start_px + y_axis.end_px) / 2), axis_titles[1])


def draw_time_ticks(drawing: Drawing, x_axis: Axis, y_axis: Axis) -> None:
    """Draw time ticks on both axes, with grid lines."""
    for time_ms in time_ticks(x_axis.low, x_axis.high):
        x = x_axis.to_px(time_ms)
        drawing.add_line((x, y_axis.start_px), (x, y_axis.end_px), "grid")
        text = format_tick_time(time_ms, x_axis.high - x_axis.low)
        drawing.add_time((x, y_axis.start_px + 15), text, "middle", time_ms)
    for time_ms in time_ticks(y_axis.low, y_axis.high):
        y = y_axis.to_px(time_ms)
        drawing.add_line((x_axis.start_px, y), (x_axis.end_px, y), "grid")
        text = format_tick_time(time_ms, y_axis.high - y_axis.low)
        drawing.add_time((x_axis.start_px - 6, y + 4), text, "right", time_ms)
