"""Labels of panes do not overlap the watermark or each other, and the legend names the drawn kinds."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from penstock.engine.diagrams import DiagramScene, render_pane_diagram
from penstock.engine.diagrams.label_placement import LETTER_WIDTH, TEXT_HEIGHT, Label
from penstock.engine.diagrams.pane_diagram import DIAGRAM_HEIGHT as PICTURE_HEIGHT
from penstock.engine.diagrams.pane_diagram import MARGIN_BOTTOM, TIMING_LABELS, DrawnPane
from penstock.pipelines import catalog

GALLERY = Path("pipelines/docs/gallery")
BATCHES = range(0, 120_000, 10_000)
CLOSE_WATERMARK = [(clock - 3_000, clock) for clock in BATCHES]
"""A watermark that is three seconds behind the clock, moved by each batch."""


def make_scene(*panes: DrawnPane) -> DiagramScene:
    return DiagramScene("queries", "of each", 0, 120_000, panes, watermark=CLOSE_WATERMARK)


def find_labels(svg: str) -> list[tuple[str, Label]]:
    shapes = (shape for shape in ET.fromstring(svg).iter() if shape.get("class") == "label middle")
    return [
        (text, Label(float(shape.get("x", "0")), float(shape.get("y", "0")), LETTER_WIDTH * len(text)))
        for shape in shapes
        if (text := shape.text)
    ]


def find_watermark(svg: str) -> list[tuple[float, float]]:
    (points,) = re.findall(r'<polyline class="watermark" points="(.*?)"', svg)
    return [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())]


def find_bar(svg: str, timing: str) -> tuple[float, float, float]:
    """The start, end and height of the only bar of a kind."""
    shapes = (shape for shape in ET.fromstring(svg).iter() if shape.get("class") == timing)
    ((x, y, width),) = (
        [float(shape.get(name, "0")) for name in ("x", "y", "width")]
        for shape in shapes
        if shape.get("height") == "3" and shape.get("y") != "46"
    )
    return x, x + width, y


def find_legend(svg: str) -> set[str]:
    bars = (shape for shape in ET.fromstring(svg).iter() if shape.get("y") == "46")
    return {bar.get("class", "") for bar in bars}


def test_the_label_of_a_dot_avoids_the_watermark() -> None:
    dots = [DrawnPane(at - 4_000, at - 4_000, at, "on_time", f"spike at {at}") for at in BATCHES[3::3]]
    svg = render_pane_diagram(make_scene(*dots))
    labels, watermark = find_labels(svg), find_watermark(svg)
    assert {text for text, _ in labels} == {dot.value for dot in dots}
    assert not [text for text, label in labels if label.is_crossed_by(watermark)]


def test_the_label_of_a_bar_is_in_the_middle_of_its_window() -> None:
    window = DrawnPane(30_000, 90_000, 70_000, "early", "twelve")
    svg = render_pane_diagram(make_scene(window))
    ((_, label),) = find_labels(svg)
    (bar,) = (
        shape for shape in ET.fromstring(svg).iter() if shape.get("height") == "3" and shape.get("y") != "46"
    )
    assert label.middle == pytest.approx(float(bar.get("x", "0")) + float(bar.get("width", "0")) / 2, abs=0.1)


def test_the_label_of_a_bar_moves_aside_from_the_watermark() -> None:
    window = DrawnPane(37_000, 97_000, 70_000, "early", "twelve")
    svg = render_pane_diagram(make_scene(window))
    ((_, label),) = find_labels(svg)
    left, right, y = find_bar(svg, "early")
    assert not label.is_crossed_by(find_watermark(svg))
    assert Label((left + right) / 2, label.baseline, label.length).is_crossed_by(find_watermark(svg))
    assert left < label.ends[0]
    assert label.ends[1] < right
    assert label.baseline < y


def test_the_label_of_a_bar_is_below_it_under_a_close_bar() -> None:
    panes = [DrawnPane(10_000, 50_000, at, kind, "7") for at, kind in ((60_000, "early"), (62_000, "late"))]
    svg = render_pane_diagram(make_scene(*panes))
    below, above = sorted((label for _, label in find_labels(svg)), key=lambda label: -label.baseline)
    assert (
        below.baseline - TEXT_HEIGHT > find_bar(svg, "early")[2] > find_bar(svg, "late")[2] > above.baseline
    )


def test_the_label_of_a_dot_stays_above_the_axis() -> None:
    ((_, label),) = find_labels(render_pane_diagram(make_scene(DrawnPane(0, 0, 500, "on_time", "first"))))
    assert label.baseline < PICTURE_HEIGHT - MARGIN_BOTTOM


def test_a_label_without_room_is_left_out() -> None:
    svg = render_pane_diagram(
        make_scene(*(DrawnPane(60_000, 60_000, 60_000, "late", f"number {n}") for n in range(9)))
    )
    labels = [label for _, label in find_labels(svg)]
    assert 1 < len(labels) < 9
    assert not any(one.overlaps(other) for n, one in enumerate(labels) for other in labels[n + 1 :])


@pytest.mark.parametrize("timing", TIMING_LABELS)
def test_a_legend_names_the_drawn_kinds(timing: str) -> None:
    assert find_legend(render_pane_diagram(make_scene(DrawnPane(0, 30_000, 40_000, timing, "3")))) == {timing}
    assert find_legend(render_pane_diagram(make_scene())) == set()


@pytest.mark.parametrize("name", catalog.pipeline_names())
def test_the_legend_of_a_gallery_picture_names_its_kinds(name: str) -> None:
    svg = (GALLERY / f"{name}.svg").read_text("utf-8")
    mark_shapes = [shape for shape in ET.fromstring(svg).iter() if shape.get("class") in TIMING_LABELS]
    kinds = {shape.get("class", "") for shape in mark_shapes if shape.get("y") != "46"}
    assert find_legend(svg) == kinds


@pytest.mark.parametrize("name", ["activity", "device_and_site", "sensor_minute", "word_count"])
def test_value_labels_of_the_gallery_avoid_the_watermark(name: str) -> None:
    svg = (GALLERY / f"{name}.svg").read_text("utf-8")
    labels, watermark = find_labels(svg), find_watermark(svg)
    assert len(labels) > 10
    assert not [text for text, label in labels if label.is_crossed_by(watermark)]


def test_trend_labels_of_the_gallery_avoid_the_watermark() -> None:
    svg = (GALLERY / "zeitgeist.svg").read_text("utf-8")
    labels, watermark = find_labels(svg), find_watermark(svg)
    assert len(labels) == 5
    assert not [text for text, label in labels if label.is_crossed_by(watermark)]
