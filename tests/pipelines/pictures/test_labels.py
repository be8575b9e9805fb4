"""What panes say stands clear of the watermark and of one another; a legend names what is there."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from penstock.pipelines import catalog
from penstock.pipelines.pictures import Scene, picture
from penstock.pipelines.pictures.labels import HEIGHT, LETTER, Label
from penstock.pipelines.pictures.panes import BOTTOM, TIMINGS, DrawnPane
from penstock.pipelines.pictures.panes import HEIGHT as PICTURE_HEIGHT

GALLERY = Path("pipelines/docs/gallery")
BATCHES = range(0, 120_000, 10_000)
CLOSE_BEHIND = [(clock - 3_000, clock) for clock in BATCHES]
"""A watermark that is three seconds behind the clock, moved by each batch."""


def scene(*panes: DrawnPane) -> Scene:
    return Scene("queries", "of each", 0, 120_000, panes, watermark=CLOSE_BEHIND)


def labels_of(drawn: str) -> list[tuple[str, Label]]:
    shapes = (shape for shape in ET.fromstring(drawn).iter() if shape.get("class") == "label middle")
    return [
        (said, Label(float(shape.get("x", "0")), float(shape.get("y", "0")), LETTER * len(said)))
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


def test_what_a_dot_says_is_written_off_the_watermark() -> None:
    dots = [DrawnPane(at - 4_000, at - 4_000, at, "on_time", f"spike at {at}") for at in BATCHES[3::3]]
    drawn = picture(scene(*dots))
    found, way = labels_of(drawn), watermark_of(drawn)
    assert {said for said, _ in found} == {dot.value for dot in dots}
    assert not [said for said, label in found if label.is_crossed(way)]


def test_what_a_bar_says_stands_in_the_middle_of_its_window() -> None:
    window = DrawnPane(30_000, 90_000, 70_000, "early", "twelve")
    drawn = picture(scene(window))
    ((_, label),) = labels_of(drawn)
    (bar,) = (
        shape
        for shape in ET.fromstring(drawn).iter()
        if shape.get("height") == "3" and shape.get("y") != "46"
    )
    assert label.middle == pytest.approx(float(bar.get("x", "0")) + float(bar.get("width", "0")) / 2, abs=0.1)


def test_what_a_bar_says_stands_aside_where_the_watermark_crosses_its_middle() -> None:
    window = DrawnPane(37_000, 97_000, 70_000, "early", "twelve")
    drawn = picture(scene(window))
    ((_, label),) = labels_of(drawn)
    left, right, y = bar_of(drawn, "early")
    assert not label.is_crossed(watermark_of(drawn))
    assert Label((left + right) / 2, label.foot, label.length).is_crossed(watermark_of(drawn))
    assert left < label.ends[0]
    assert label.ends[1] < right
    assert label.foot < y


def test_what_a_bar_says_stands_below_it_where_another_is_close_above() -> None:
    panes = [DrawnPane(10_000, 50_000, at, kind, "7") for at, kind in ((60_000, "early"), (62_000, "late"))]
    drawn = picture(scene(*panes))
    below, above = sorted((label for _, label in labels_of(drawn)), key=lambda label: -label.foot)
    assert below.foot - HEIGHT > bar_of(drawn, "early")[2] > bar_of(drawn, "late")[2] > above.foot


def test_what_a_dot_says_stays_above_the_axis() -> None:
    ((_, label),) = labels_of(picture(scene(DrawnPane(0, 0, 500, "on_time", "first"))))
    assert label.foot < PICTURE_HEIGHT - BOTTOM


def test_what_finds_no_room_is_not_written_over_another() -> None:
    drawn = picture(scene(*(DrawnPane(60_000, 60_000, 60_000, "late", f"number {n}") for n in range(9))))
    found = [label for _, label in labels_of(drawn)]
    assert 1 < len(found) < 9
    assert not any(one.meets(other) for n, one in enumerate(found) for other in found[n + 1 :])


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_legend_names_the_kinds_that_are_there(timing: str) -> None:
    assert legend_of(picture(scene(DrawnPane(0, 30_000, 40_000, timing, "3")))) == {timing}
    assert legend_of(picture(scene())) == set()


@pytest.mark.parametrize("name", catalog.names())
def test_the_legend_of_a_picture_of_the_gallery_names_what_it_shows(name: str) -> None:
    drawn = (GALLERY / f"{name}.svg").read_text("utf-8")
    marks = [shape for shape in ET.fromstring(drawn).iter() if shape.get("class") in TIMINGS]
    shown = {shape.get("class", "") for shape in marks if shape.get("y") != "46"}
    assert legend_of(drawn) == shown


@pytest.mark.parametrize("name", ["activity", "device_and_site", "sensor_minute", "word_count"])
def test_values_of_the_gallery_are_written_off_the_watermark(name: str) -> None:
    drawn = (GALLERY / f"{name}.svg").read_text("utf-8")
    found, way = labels_of(drawn), watermark_of(drawn)
    assert len(found) > 10
    assert not [said for said, label in found if label.is_crossed(way)]


def test_trends_of_the_gallery_are_written_off_the_watermark() -> None:
    drawn = (GALLERY / "zeitgeist.svg").read_text("utf-8")
    found, way = labels_of(drawn), watermark_of(drawn)
    assert len(found) == 5
    assert not [said for said, label in found if label.is_crossed(way)]
