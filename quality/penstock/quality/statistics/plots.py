"""The figures of a table over time, plotted: one page a table, which loads nothing from anywhere.

Dagster plots what it was told since it first asked; here is every stretch that was looked back at.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from statistics import median

from penstock.quality.expectations.page import STYLE
from penstock.quality.statistics.change import Change
from penstock.quality.statistics.series import Point

WIDTH, HEIGHT, MARGIN = 640, 90, 6
OWN_STYLE = """
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1.2rem 2rem }
figure { margin: 0 } figcaption { display: flex; justify-content: space-between; gap: 1rem; align-items: baseline }
svg { width: 100%; height: auto; background: #f6f8fa; border-radius: 4px }
.ends { color: #57606a; font-size: .8rem }
polyline { fill: none; stroke: #0550ae; stroke-width: 1.5 } line { stroke: #d0d7de; stroke-dasharray: 4 3 }
circle { fill: #0550ae } circle.wrong { fill: #b42318 }
"""
Groups = Mapping[str, Sequence[Point]]
"""What is plotted, by what its times are those of."""


def publish_plots(
    file: Path, about: str, groups: Groups, changes: Sequence[Change], page: str | None = None
) -> Path:
    """Write the plots of a table, whole or not at all; `page` is the address of what is expected of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(plotted(about, groups, changes, page), "utf-8")
    partial.replace(file)
    return file


def plotted(about: str, groups: Groups, changes: Sequence[Change], page: str | None = None) -> str:
    """Return the text of the page."""
    name = escape(about)
    back = f"<p><a href='{escape(page, quote=True)}'>what is expected of it</a></p>" if page else ""
    told = "".join(f"<p class='wrong'>sudden: {escape(str(change))}</p>" for change in changes)
    body = "".join(part for what, points in groups.items() for part in _group(what, points, changes))
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width'><title>{name} over time</title>"
        f"<style>{STYLE}{OWN_STYLE}</style></head>"
        f"<body><h1>{name} over time</h1>{back}{told}{body}</body></html>"
    )


def _group(what: str, points: Sequence[Point], changes: Sequence[Change]) -> Iterator[str]:
    yield f"<h2>{escape(what)}</h2>"
    if not points:
        yield "<p>No stretch is over yet.</p>"
        return
    sudden = {change.figure for change in changes if change.at_ms == points[-1].at_ms}
    yield "<div class='plots'>"
    for figure in points[-1].figures:
        known = [(point.at_ms, point.figures[figure]) for point in points if figure in point.figures]
        yield _plot(figure, known, odd=figure in sudden)
    yield "</div>"


def _plot(figure: str, known: Sequence[tuple[int, float]], *, odd: bool) -> str:
    """One figure: its line, the middle as a dashed one, and each value to be read where the pointer rests."""
    values = [value for _, value in known]
    places = list(zip(_across(len(known)), _up(values), strict=True))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    *before, last = (_dot(place, *one) for place, one in zip(places, known, strict=True))
    last = last.replace("<circle", "<circle class='wrong'") if odd else last
    middle = _up([*values, median(values)])[-1]
    usual, reach = _said(median(values)), f"{_said(min(values))} to {_said(max(values))}"
    return (
        f"<figure id='{escape(figure)}'><figcaption><b>{escape(figure)}</b>"
        f"<span{' class=wrong' if odd else ''}>{_said(values[-1])}, usually {usual}</span></figcaption>"
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{escape(figure)} over time'>"
        f"<line x1='0' x2='{WIDTH}' y1='{middle:.1f}' y2='{middle:.1f}'/><polyline points='{line}'/>"
        f"{''.join(before)}{last}</svg>"
        f"<figcaption class='ends'><span>{_at(known[0][0])}</span><span>{reach}</span>"
        f"<span>{_at(known[-1][0])}</span></figcaption></figure>"
    )


def _dot(place: tuple[float, float], at_ms: int, value: float) -> str:
    x, y = place
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.5'><title>{_at(at_ms)}: {value:g}</title></circle>"


def _across(count: int) -> list[float]:
    step = (WIDTH - 2 * MARGIN) / max(count - 1, 1)
    return [MARGIN + number * step for number in range(count)]


def _up(values: Sequence[float]) -> list[float]:
    """How far from the top each value is; a calm line is drawn in the middle."""
    least, most = min(values), max(values)
    room = HEIGHT - 2 * MARGIN
    return [MARGIN + room * ((most - value) / (most - least) if most > least else 0.5) for value in values]


def _said(value: float) -> str:
    """As many digits as a person compares by."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _at(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
