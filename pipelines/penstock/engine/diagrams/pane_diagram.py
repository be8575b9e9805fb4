"""The picture by which this field explains itself: event time across, processing time upwards.

A record is a dot where its two times meet; were nothing ever late, all dots would lie on the dashed line. A pane is
a bar as wide as its window, at the moment when it appeared; the faint ground below it reaches down to the pane
before, so one sees what it adds. Its colour says early, on time or late. The blue line is the watermark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.engine.diagrams.axes import Axis, draw_frame, draw_time_ticks
from penstock.engine.diagrams.label_placement import BarSpan, LabelPlacer
from penstock.engine.diagrams.svg import Drawing

DIAGRAM_WIDTH, DIAGRAM_HEIGHT = 860, 560
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 104, 30, 64, 46
BAR_HEIGHT, DOT_RADIUS = 3.0, 3.5
MAX_SUBTITLE_LENGTH = 120
INVALID_OFFSET = 6.0
"""How far from the axis invalid records are drawn."""
TIMING_LABELS = {"early": "early", "on_time": "on time", "late": "late"}


@dataclass(frozen=True)
class DrawnPane:
    """A pane: its window, when it appeared, when the one before it did, and what it says."""

    start: float
    end: float
    clock: int
    timing: str
    value: str
    previous_clock: int | None = None
    link: str = ""
    """Where the rows of the pane are shown, for a diagram that is part of a page."""


@dataclass(frozen=True)
class DiagramScene:
    """The content of a pane diagram. Times are in milliseconds."""

    title: str
    subtitle: str
    started: int
    ended: int
    panes: Sequence[DrawnPane]
    records: Sequence[tuple[int, int]] = ()
    """Event time and send time of each record."""
    late_records: Sequence[tuple[float, float]] = ()
    """Late records: event time and clock."""
    watermark: Sequence[tuple[int, int]] = ()
    """Each watermark and the clock of its batch."""
    retractions: Sequence[DrawnPane] = ()
    """Rows that retract a pane. Drawn as hollow bars."""
    invalid_records: Sequence[int] = ()
    """When invalid records arrived; their event times are not trusted."""


@dataclass(frozen=True)
class PlotArea:
    """The pixels between the axes."""

    left: float
    right: float
    top: float
    bottom: float


DEFAULT_AREA = PlotArea(MARGIN_LEFT, DIAGRAM_WIDTH - MARGIN_RIGHT, MARGIN_TOP, DIAGRAM_HEIGHT - MARGIN_BOTTOM)


def render_pane_diagram(scene: DiagramScene) -> str:
    """Return the pane diagram as SVG."""
    drawing = Drawing(DIAGRAM_WIDTH, DIAGRAM_HEIGHT, f"{scene.title}: {scene.subtitle}")
    draw_scene(drawing, scene, DEFAULT_AREA)
    draw_headline(drawing, scene)
    return drawing.to_svg()


def draw_scene(drawing: Drawing, scene: DiagramScene, area: PlotArea) -> None:
    """Draw a scene with its axes, without title and legend."""
    x_axis = Axis(*event_time_range(scene), area.left, area.right)
    y_axis = Axis(scene.started, scene.ended, area.bottom, area.top)
    draw_time_ticks(drawing, x_axis, y_axis)
    for pane in scene.panes:
        draw_pane_ground(drawing, x_axis, y_axis, pane)
    first, last = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
    drawing.add_line(
        (x_axis.to_px(first), y_axis.to_px(first)), (x_axis.to_px(last), y_axis.to_px(last)), "ideal"
    )
    for position in record_positions(scene, x_axis, y_axis):
        drawing.add_dot(position, 1.6, "record")
    drawing.add_path(watermark_steps(scene, x_axis, y_axis), "watermark")
    for event_time, clock in scene.late_records:
        drawing.add_cross((x_axis.to_px(event_time), y_axis.to_px(clock)), 3, "dropped")
    for clock in scene.invalid_records:
        drawing.add_cross((x_axis.start_px + INVALID_OFFSET, y_axis.to_px(clock)), 3, "invalid")
    draw_retractions(drawing, x_axis, y_axis, scene.retractions)
    draw_bars(drawing, x_axis, y_axis, scene.panes)
    draw_values(drawing, x_axis, y_axis, scene)
    draw_frame(drawing, x_axis, y_axis, ("event time", "processing time"))


def event_time_range(scene: DiagramScene) -> tuple[float, float]:
    """Return the stretch of event time that is worth showing: no further back than a run is long."""
    bounds = [bound for pane in scene.panes for bound in (pane.start, pane.end) if abs(bound) != float("inf")]
    earliest = scene.started - (scene.ended - scene.started) / 3
    return max(min([scene.started, *bounds]), earliest), max([scene.ended, *bounds])


def draw_pane_ground(drawing: Drawing, x_axis: Axis, y_axis: Axis, pane: DrawnPane) -> None:
    """Draw the faint ground of a pane, down to the one before it or to where its window begins."""
    left, right = x_axis.to_px(pane.start), x_axis.to_px(pane.end)
    ground_clock = (
        min(max(pane.start, y_axis.low), pane.clock) if pane.previous_clock is None else pane.previous_clock
    )
    top, bottom = y_axis.to_px(pane.clock), y_axis.to_px(ground_clock)
    if bottom > top and right > left:
        drawing.add_rectangle((left, top), (right - left, bottom - top), pane.timing, 0.13)


def draw_bars(drawing: Drawing, x_axis: Axis, y_axis: Axis, panes: Sequence[DrawnPane]) -> None:
    """Draw the panes."""
    for pane in panes:
        left, right, y = bar_span(x_axis, y_axis, pane)
        tooltip = f"{TIMING_LABELS.get(pane.timing, pane.timing)}: {pane.value}"
        if is_drawn_as_dot(left, right):
            drawing.add_dot(((left + right) / 2, y), DOT_RADIUS, pane.timing)
        else:
            size = right - left - 2, BAR_HEIGHT
            drawing.add_pane((left + 1, y - BAR_HEIGHT / 2), size, pane.timing, tooltip, pane.link)


def draw_retractions(drawing: Drawing, x_axis: Axis, y_axis: Axis, panes: Sequence[DrawnPane]) -> None:
    """Draw what was retracted: hollow bars just below the panes that replace them."""
    for pane in panes:
        left, right, y = bar_span(x_axis, y_axis, pane)
        if not is_drawn_as_dot(left, right):
            size = right - left - 2, BAR_HEIGHT
            drawing.add_pane((left + 1, y + BAR_HEIGHT), size, "retract", f"retracts {pane.value}", pane.link)


def bar_span(x_axis: Axis, y_axis: Axis, pane: DrawnPane) -> BarSpan:
    """Return the horizontal start and end of a pane, and its height."""
    return x_axis.to_px(pane.start), x_axis.to_px(pane.end), y_axis.to_px(pane.clock)


def record_positions(scene: DiagramScene, x_axis: Axis, y_axis: Axis) -> list[tuple[float, float]]:
    """Return the positions of the records that fit into the diagram."""
    return [
        (x_axis.to_px(event), y_axis.to_px(arrived))
        for event, arrived in scene.records
        if x_axis.contains(event) and y_axis.contains(arrived)
    ]


def is_drawn_as_dot(left: float, right: float) -> bool:
    """Return whether a pane is too narrow for a bar."""
    return right - left < 2 * DOT_RADIUS


def draw_values(drawing: Drawing, x_axis: Axis, y_axis: Axis, scene: DiagramScene) -> None:
    """Write what panes say, those that matter most first; what finds no room is said where a mouse rests."""
    label_placer = LabelPlacer(
        (x_axis.start_px + 2, x_axis.end_px),
        watermark_steps(scene, x_axis, y_axis),
        y_axis.start_px,
        [span for pane in scene.panes if not is_drawn_as_dot(*(span := bar_span(x_axis, y_axis, pane))[:2])],
        record_positions(scene, x_axis, y_axis),
    )
    for pane in sorted(scene.panes, key=lambda pane: (pane.timing == "early", pane.clock)):
        left, right, y = bar_span(x_axis, y_axis, pane)
        if not pane.value:
            continue
        if is_drawn_as_dot(left, right):
            label = label_placer.place_dot_label(((left + right) / 2, y), pane.value)
        else:
            label = label_placer.place_bar_label(left, right, y, pane.value)
        if label is not None:
            drawing.add_text((label.middle, label.baseline), pane.value, "label middle")


def watermark_steps(scene: DiagramScene, x_axis: Axis, y_axis: Axis) -> list[tuple[float, float]]:
    """Return the step path of the watermark, which only moves with a batch."""
    points: list[tuple[float, float]] = []
    for watermark, clock in scene.watermark:
        if points:
            points.append((points[-1][0], y_axis.to_px(clock)))
        points.append((x_axis.to_px(watermark), y_axis.to_px(clock)))
    return points


def shorten(text: str) -> str:
    """Shorten a text to one line. The full text is in the accessible title."""
    return text if len(text) <= MAX_SUBTITLE_LENGTH else f"{text[:MAX_SUBTITLE_LENGTH].rpartition(' ')[0]} …"


def draw_headline(drawing: Drawing, scene: DiagramScene) -> None:
    """Draw the title and the legend."""
    drawing.add_text((MARGIN_LEFT, 20), scene.title, "title")
    drawing.add_text((MARGIN_LEFT, 36), shorten(scene.subtitle))
    x = float(MARGIN_LEFT)
    shown = {pane.timing for pane in scene.panes}
    for timing, timing_label in (
        (timing, timing_label) for timing, timing_label in TIMING_LABELS.items() if timing in shown
    ):
        drawing.add_rectangle((x, 46), (18, BAR_HEIGHT), timing)
        drawing.add_text((x + 23, 51), timing_label)
        x += 38 + 6 * len(timing_label)
    drawing.add_line((x, 48), (x + 18, 48), "watermark")
    drawing.add_text((x + 23, 51), "watermark")
    drawing.add_dot((x + 104, 48), 1.6, "record")
    drawing.add_text((x + 111, 51), "record")
    if scene.late_records:
        drawing.add_cross((x + 166, 48), 3, "dropped")
        drawing.add_text((x + 175, 51), "too late for its window")
