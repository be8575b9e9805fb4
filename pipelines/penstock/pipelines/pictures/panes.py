"""The picture by which this field explains itself: event time across, processing time upwards.

A record is a dot where its two times meet; were nothing ever late, all dots would lie on the dashed line. A pane is
a bar as wide as its window, at the moment when it appeared; the faint ground below it reaches down to the pane
before, so one sees what it adds. Its colour says early, on time or late. The blue line is the watermark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.pipelines.pictures.axes import Axis, frame, time_marks
from penstock.pipelines.pictures.labels import Bar, Labels
from penstock.pipelines.pictures.svg import Drawing

WIDTH, HEIGHT = 860, 560
LEFT, RIGHT, TOP, BOTTOM = 104, 30, 64, 46
BAR, POINT = 3.0, 3.5
LONGEST_LINE = 120
TIMINGS = {"early": "early", "on_time": "on time", "late": "late"}


@dataclass(frozen=True)
class DrawnPane:
    """A pane: its window, when it appeared, when the one before it did, and what it says."""

    start: float
    end: float
    clock: int
    timing: str
    value: str
    since: int | None = None


@dataclass(frozen=True)
class Scene:
    """Everything that a picture shows; times in milliseconds."""

    title: str
    subtitle: str
    began: int
    ended: int
    panes: Sequence[DrawnPane]
    records: Sequence[tuple[int, int]] = ()
    """Event time, and the moment of sending."""
    dropped: Sequence[tuple[float, float]] = ()
    """Records that no window took, as they are in the late table."""
    watermark: Sequence[tuple[int, int]] = ()
    """The watermark, and the clock at which it stood there."""


def picture(scene: Scene) -> str:
    """Return the scene as SVG."""
    drawing = Drawing(WIDTH, HEIGHT, f"{scene.title}: {scene.subtitle}")
    across = Axis(*event_times(scene), LEFT, WIDTH - RIGHT)
    up = Axis(scene.began, scene.ended, HEIGHT - BOTTOM, TOP)
    time_marks(drawing, across, up)
    for pane in scene.panes:
        ground(drawing, across, up, pane)
    first, last = max(across.low, up.low), min(across.high, up.high)
    drawing.line((across.at(first), up.at(first)), (across.at(last), up.at(last)), "ideal")
    for place in dots(scene, across, up):
        drawing.dot(place, 1.6, "record")
    drawing.path(stairs(scene, across, up), "watermark")
    for missed, clock in scene.dropped:
        drawing.cross((across.at(missed), up.at(clock)), 3, "dropped")
    bars(drawing, across, up, scene.panes)
    values(drawing, across, up, scene)
    frame(drawing, across, up, ("event time", "processing time"))
    headline(drawing, scene)
    return drawing.svg()


def event_times(scene: Scene) -> tuple[float, float]:
    """Return the stretch of event time that is worth showing: no further back than a run is long."""
    bounds = [bound for pane in scene.panes for bound in (pane.start, pane.end) if abs(bound) != float("inf")]
    back = scene.began - (scene.ended - scene.began) / 3
    return max(min([scene.began, *bounds]), back), max([scene.ended, *bounds])


def ground(drawing: Drawing, across: Axis, up: Axis, pane: DrawnPane) -> None:
    """Draw the faint ground of a pane, down to the one before it or to where its window begins."""
    left, right = across.at(pane.start), across.at(pane.end)
    since = min(max(pane.start, up.low), pane.clock) if pane.since is None else pane.since
    top, bottom = up.at(pane.clock), up.at(since)
    if bottom > top and right > left:
        drawing.rectangle((left, top), (right - left, bottom - top), pane.timing, 0.13)


def bars(drawing: Drawing, across: Axis, up: Axis, panes: Sequence[DrawnPane]) -> None:
    """Draw the panes themselves."""
    for pane in panes:
        left, right, y = bar(across, up, pane)
        said = f"{TIMINGS.get(pane.timing, pane.timing)}: {pane.value}"
        if is_dot(left, right):
            drawing.dot(((left + right) / 2, y), POINT, pane.timing)
        else:
            drawing.rectangle((left + 1, y - BAR / 2), (right - left - 2, BAR), pane.timing, said=said)


def bar(across: Axis, up: Axis, pane: DrawnPane) -> Bar:
    """Return from where to where a pane goes, and how high it lies."""
    return across.at(pane.start), across.at(pane.end), up.at(pane.clock)


def dots(scene: Scene, across: Axis, up: Axis) -> list[tuple[float, float]]:
    """Return where the records are that a picture has room for."""
    return [
        (across.at(event), up.at(arrived))
        for event, arrived in scene.records
        if across.holds(event) and up.holds(arrived)
    ]


def is_dot(left: float, right: float) -> bool:
    """Tell whether a pane is too narrow for a bar."""
    return right - left < 2 * POINT


def values(drawing: Drawing, across: Axis, up: Axis, scene: Scene) -> None:
    """Write what panes say, those that matter most first; what finds no room is said where a mouse rests."""
    labels = Labels(
        (LEFT + 2, WIDTH - RIGHT),
        stairs(scene, across, up),
        HEIGHT - BOTTOM,
        [place for pane in scene.panes if not is_dot(*(place := bar(across, up, pane))[:2])],
        dots(scene, across, up),
    )
    for pane in sorted(scene.panes, key=lambda pane: (pane.timing == "early", pane.clock)):
        left, right, y = bar(across, up, pane)
        if not pane.value:
            continue
        if is_dot(left, right):
            label = labels.of_dot(((left + right) / 2, y), pane.value)
        else:
            label = labels.of_bar(left, right, y, pane.value)
        if label is not None:
            drawing.words((label.middle, label.foot), pane.value, "label middle")


def stairs(scene: Scene, across: Axis, up: Axis) -> list[tuple[float, float]]:
    """Return the watermark's way: it stands still until a batch moves it."""
    points: list[tuple[float, float]] = []
    for mark, clock in scene.watermark:
        if points:
            points.append((points[-1][0], up.at(clock)))
        points.append((across.at(mark), up.at(clock)))
    return points


def shortened(text: str) -> str:
    """Return a text as far as a line goes; all of it is said to who cannot see the picture."""
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE].rpartition(' ')[0]} …"


def headline(drawing: Drawing, scene: Scene) -> None:
    """Write the title, and say what the marks mean that are there."""
    drawing.words((LEFT, 20), scene.title, "title")
    drawing.words((LEFT, 36), shortened(scene.subtitle))
    x = float(LEFT)
    shown = {pane.timing for pane in scene.panes}
    for timing, word in ((timing, word) for timing, word in TIMINGS.items() if timing in shown):
        drawing.rectangle((x, 46), (18, BAR), timing)
        drawing.words((x + 23, 51), word)
        x += 38 + 6 * len(word)
    drawing.line((x, 48), (x + 18, 48), "watermark")
    drawing.words((x + 23, 51), "watermark")
    drawing.dot((x + 104, 48), 1.6, "record")
    drawing.words((x + 111, 51), "record")
    if scene.dropped:
        drawing.cross((x + 166, 48), 3, "dropped")
        drawing.words((x + 175, 51), "too late for its window")
