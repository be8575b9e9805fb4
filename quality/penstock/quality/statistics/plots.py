"""Plots of the statistics of a table over time, as one self-contained HTML page per table.

Dagster plots only what was reported since the first check; this page plots every interval that was computed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from statistics import median

from penstock.core.files import write_atomically
from penstock.quality.expectations.report_page import PAGE_STYLE
from penstock.quality.statistics.change_detection import SuddenChange
from penstock.quality.statistics.series import StatisticsPoint

WIDTH_PX, HEIGHT_PX, MARGIN_PX = 640, 90, 6
PLOT_STYLE = """
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1.2rem 2rem }
figure { margin: 0 } figcaption { display: flex; justify-content: space-between; gap: 1rem; align-items: baseline }
svg { width: 100%; height: auto; background: #f6f8fa; border-radius: 4px }
.ends { color: #57606a; font-size: .8rem }
polyline { fill: none; stroke: #0550ae; stroke-width: 1.5 } line { stroke: #d0d7de; stroke-dasharray: 4 3 }
circle { fill: #0550ae } circle.failed { fill: #b42318 }
"""
PointGroups = Mapping[str, Sequence[StatisticsPoint]]
"""The points to plot, by the title of their time axis."""


def publish_plots(
    file: Path, subject: str, groups: PointGroups, changes: Sequence[SuddenChange], page: str | None = None
) -> Path:
    """Write the plots of a table atomically. `page` is the URL of its expectations."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, render_plots(subject, groups, changes, page))
    return file


def render_plots(
    subject: str, groups: PointGroups, changes: Sequence[SuddenChange], page: str | None = None
) -> str:
    """Return the HTML of the page."""
    name = escape(subject)
    back_link = f"<p><a href='{escape(page, quote=True)}'>expectations</a></p>" if page else ""
    changes_html = "".join(
        f"<p class='failed'>sudden change: {escape(str(change))}</p>" for change in changes
    )
    body = "".join(part for title, points in groups.items() for part in _render_group(title, points, changes))
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width'><title>{name} over time</title>"
        f"<style>{PAGE_STYLE}{PLOT_STYLE}</style></head>"
        f"<body><h1>{name} over time</h1>{back_link}{changes_html}{body}</body></html>"
    )


def _render_group(
    title: str, points: Sequence[StatisticsPoint], changes: Sequence[SuddenChange]
) -> Iterator[str]:
    yield f"<h2>{escape(title)}</h2>"
    if not points:
        yield "<p>No interval is complete yet.</p>"
        return
    sudden_figures = {change.figure for change in changes if change.at_ms == points[-1].at_ms}
    yield "<div class='plots'>"
    for figure in points[-1].figures:
        timed_values = [(point.at_ms, point.figures[figure]) for point in points if figure in point.figures]
        yield _render_plot(figure, timed_values, is_sudden=figure in sudden_figures)
    yield "</div>"


def _render_plot(figure: str, timed_values: Sequence[tuple[int, float]], *, is_sudden: bool) -> str:
    """Plot one figure: a line, the median as a dashed line, and a tooltip for each value."""
    values = [value for _, value in timed_values]
    positions = list(zip(_x_positions(len(timed_values)), _y_positions(values), strict=True))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    *dots, last_dot = (
        _render_dot(position, *timed_value)
        for position, timed_value in zip(positions, timed_values, strict=True)
    )
    last_dot = last_dot.replace("<circle", "<circle class='failed'") if is_sudden else last_dot
    median_y = _y_positions([*values, median(values)])[-1]
    usual, value_range = (
        _format_number(median(values)),
        f"{_format_number(min(values))} to {_format_number(max(values))}",
    )
    return (
        f"<figure id='{escape(figure)}'><figcaption><b>{escape(figure)}</b>"
        f"<span{' class=failed' if is_sudden else ''}>{_format_number(values[-1])}, usually {usual}</span>"
        "</figcaption>"
        f"<svg viewBox='0 0 {WIDTH_PX} {HEIGHT_PX}' role='img' aria-label='{escape(figure)} over time'>"
        f"<line x1='0' x2='{WIDTH_PX}' y1='{median_y:.1f}' y2='{median_y:.1f}'/><polyline points='{line}'/>"
        f"{''.join(dots)}{last_dot}</svg>"
        f"<figcaption class='ends'><span>{format_time(timed_values[0][0])}</span><span>{value_range}</span>"
        f"<span>{format_time(timed_values[-1][0])}</span></figcaption></figure>"
    )


def _render_dot(position: tuple[float, float], at_ms: int, value: float) -> str:
    x, y = position
    return (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.5'><title>{format_time(at_ms)}: {value:g}</title></circle>"
    )


def _x_positions(count: int) -> list[float]:
    step = (WIDTH_PX - 2 * MARGIN_PX) / max(count - 1, 1)
    return [MARGIN_PX + number * step for number in range(count)]


def _y_positions(values: Sequence[float]) -> list[float]:
    """Return the y position of each value; a constant line is drawn in the middle."""
    least, most = min(values), max(values)
    plot_height = HEIGHT_PX - 2 * MARGIN_PX
    return [
        MARGIN_PX + plot_height * ((most - value) / (most - least) if most > least else 0.5)
        for value in values
    ]


def _format_number(value: float) -> str:
    """Format a number with a readable number of digits."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def format_time(at_ms: int) -> str:
    """Format a time to the minute, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
