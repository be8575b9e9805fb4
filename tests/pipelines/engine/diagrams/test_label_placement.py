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
CLOSE_BEHIND = [(clock - 3_000, clock) for clock in BATCHES]
"""A watermark that is three seconds behind the clock, moved by each batch."""


def scene(*panes: DrawnPane) -> DiagramScene:
    return DiagramScene("queries", "of each", 0, 120_000, panes, watermark=CLOSE_BEHIND)


def labels_of(drawn: str) -> list[tuple[str, Label]]:
    shapes = (shape for shape in ET.fromstring(drawn).iter() if shape.get("class") == "label middle")
    return [
        (said, Label(float(shape.get("x", "0")), float(shape.get("y", "0")), LETTER_WIDTH * len(said)))
        for shape in shapes
        if (said := shape.text)
    ]


def watermark_of(drawn: str) -> list[tuple[float, float]]:
    (points,) = re.findall(r'<polyline class="watermark" points="(.*?)"', drawn)
    return [(float(x), float(y)) for x, y in (place.split(",") for place in points.split())]


def bar_of(drawn: str, timing: str) -> tuple[float, float, float]:
    """From where to where the only bar of a kind goes, and how high."""
    shapes = (shape for shape in ET.fromstring(drawn).iter() if shape.get("class") == timing)
    ((x, y, width),) = (
        [float(shape.get(name, "0")) for name in ("x", "y", "width")]
        for shape in shapes
        if shape.get("height") == "3" and shape.get("y") != "46"
    )
    return x, x + width, y


def legend_of(drawn: str) -> set[str]:
    bars = (shape for shape in ET.fromstring(drawn).iter() if shape.get("y") == "46")
    return {bar.get("class", "") for bar in bars}


def test_the_label_of_a_dot_avoids_the_watermark() -> None:
    dots = [DrawnPane(at - 4_000, at - 4_000, at, "on_time", f"spike at {at}") for at in BATCHES[3::3]]
    drawn = render_pane_diagram(scene(*dots))
    found, way = labels_of(drawn), watermark_of(drawn)
    assert {said for said, _ in found} == {dot.value for dot in dots}
    assert not [said for said, label in found if label.is_crossed_by(way)]


def test_the_label_of_a_bar_is_in_the_middle_of_its_window() -> None:
    window = DrawnPane(30_000, 90_000, 70_000, "early", "twelve")
    drawn = render_pane_diagram(scene(window))
    ((_, label),) = labels_of(drawn)
    (bar,) = (
        shape
        for shape in ET.fromstring(drawn).iter()
        if shape.get("height") == "3" and shape.get("y") != "46"
    )
    assert label.middle == pytest.approx(float(bar.get("x", "0")) + float(bar.get("width", "0")) / 2, abs=0.1)


def test_the_label_of_a_bar_moves_aside_from_the_watermark() -> None:
    window = DrawnPane(37_000, 97_000, 70_000, "early", "twelve")
    drawn = render_pane_diagram(scene(window))
    ((_, label),) = labels_of(drawn)
    left, right, y = bar_of(drawn, "early")
    assert not label.is_crossed_by(watermark_of(drawn))
    assert Label((left + right) / 2, label.baseline, label.length).is_crossed_by(watermark_of(drawn))
    assert left < label.ends[0]
    assert label.ends[1] < right
    assert label.baseline < y


def test_the_label_of_a_bar_is_below_it_under_a_close_bar() -> None:
    panes = [DrawnPane(10_000, 50_000, at, kind, "7") for at, kind in ((60_000, "early"), (62_000, "late"))]
    drawn = render_pane_diagram(scene(*panes))
    below, above = sorted((label for _, label in labels_of(drawn)), key=lambda label: -label.baseline)
    assert (
        below.baseline - TEXT_HEIGHT > bar_of(drawn, "early")[2] > bar_of(drawn, "late")[2] > above.baseline
    )


def test_the_label_of_a_dot_stays_above_the_axis() -> None:
    ((_, label),) = labels_of(render_pane_diagram(scene(DrawnPane(0, 0, 500, "on_time", "first"))))
    assert label.baseline < PICTURE_HEIGHT - MARGIN_BOTTOM


def test_a_label_without_room_is_left_out() -> None:
    drawn = render_pane_diagram(
        scene(*(DrawnPane(60_000, 60_000, 60_000, "late", f"number {n}") for n in range(9)))
    )
    found = [label for _, label in labels_of(drawn)]
    assert 1 < len(found) < 9
    assert not any(one.overlaps(other) for n, one in enumerate(found) for other in found[n + 1 :])


@pytest.mark.parametrize("timing", TIMING_LABELS)
def test_a_legend_names_the_drawn_kinds(timing: str) -> None:
    assert legend_of(render_pane_diagram(scene(DrawnPane(0, 30_000, 40_000, timing, "3")))) == {timing}
    assert legend_of(render_pane_diagram(scene())) == set()


@pytest.mark.parametrize("name", catalog.pipeline_names())
def test_the_legend_of_a_gallery_picture_names_its_kinds(name: str) -> None:
    drawn = (GALLERY / f"{name}.svg").read_text("utf-8")
    marks = [shape for shape in ET.fromstring(drawn).iter() if shape.get("class") in TIMING_LABELS]
    shown = {shape.get("class", "") for shape in marks if shape.get("y") != "46"}
    assert legend_of(drawn) == shown


@pytest.mark.parametrize("name", ["activity", "device_and_site", "sensor_minute", "word_count"])
def test_value_labels_of_the_gallery_avoid_the_watermark(name: str) -> None:
    drawn = (GALLERY / f"{name}.svg").read_text("utf-8")
    found, way = labels_of(drawn), watermark_of(drawn)
    assert len(found) > 10
    assert not [said for said, label in found if label.is_crossed_by(way)]


def test_trend_labels_of_the_gallery_avoid_the_watermark() -> None:
    drawn = (GALLERY / "zeitgeist.svg").read_text("utf-8")
    found, way = labels_of(drawn), watermark_of(drawn)
    assert len(found) == 5
    assert not [said for said, label in found if label.is_crossed_by(way)]
