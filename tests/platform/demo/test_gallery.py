"""The pages and diagrams of the gallery."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from penstock.engine.diagrams import Curve, CurvePoint, DiagramScene, render_curves, render_pane_diagram
from penstock.engine.diagrams.pane_diagram import DrawnPane
from penstock.pipelines import catalog
from penstock.pipelines.catalog import load_demo
from penstock.pipelines.demonstration import Demo
from penstock.platform.demo.gallery import render_index
from penstock.platform.demo.pipeline_page import iter_question_lines
from penstock.platform.demo.timed_records import build_timed_records
from penstock.platform.errors import DemoError

GALLERY = Path("pipelines/docs/gallery")
UPDATE_HINT = "`penstock demo --all --out pipelines/docs/gallery` writes the gallery again"


@pytest.mark.parametrize("name", catalog.pipeline_names())
def test_a_page_shows_the_current_definition_of_its_pipeline(name: str) -> None:
    page = (GALLERY / f"{name}.md").read_text("utf-8")
    (written,) = re.findall(r"```(?:python|yaml)\n(.*?)\n```", page, re.DOTALL)
    assert written == catalog.pipeline_file(name).read_text("utf-8").strip(), UPDATE_HINT
    assert "\n".join(iter_question_lines(name)) in page, UPDATE_HINT


@pytest.mark.parametrize("name", catalog.pipeline_names())
def test_a_diagram_shows_panes_and_the_watermark(name: str) -> None:
    root = ET.fromstring((GALLERY / f"{name}.svg").read_text("utf-8"))
    kinds = [shape.get("class") for shape in root.iter()]
    assert sum(kind in ("early", "on_time", "late") for kind in kinds) > 3 + 2, "more than the legend has"
    assert "watermark" in kinds
    assert "record" in kinds


def test_the_gallery_lists_every_pipeline() -> None:
    assert (GALLERY / "README.md").read_text("utf-8") == render_index(catalog.pipeline_names()), UPDATE_HINT


@pytest.mark.parametrize("name", catalog.pipeline_names())
def test_every_pipeline_has_demo_records(name: str) -> None:
    plan, demo = catalog.load_plan(name), load_demo(name)
    for source in plan.sources:
        sent = build_timed_records(source.name, demo, len(plan.sources))
        assert len(sent) >= 60
        assert [record.sent_at_ms for record in sent] == sorted(record.sent_at_ms for record in sent)


def test_a_topic_without_a_generator_is_refused_with_the_fix() -> None:
    with pytest.raises(DemoError, match=r"access-log has no generator.*add one to ingestion"):
        build_timed_records("access-log", Demo())


def test_a_pane_is_drawn_over_its_window_at_its_batch_time() -> None:
    panes = [
        DrawnPane(0, 60_000, 30_000, "early", "3"),
        DrawnPane(0, 60_000, 70_000, "on_time", "5", previous_clock=30_000),
        DrawnPane(0, 60_000, 90_000, "late", "6 & <more>", previous_clock=70_000),
    ]
    scene = DiagramScene(
        "clicks", "of one", 0, 120_000, panes, [(1_000, 2_000)], [(5_000, 90_000)], [(0, 10_000)]
    )
    root = ET.fromstring(render_pane_diagram(scene))
    bars = [shape for shape in root.iter() if shape.get("height") == "3" and shape.get("y") != "46"]
    assert [bar.get("class") for bar in bars] == ["early", "on_time", "late"]
    assert len({bar.get("width") for bar in bars}) == 1
    heights = [float(bar.get("y", "0")) for bar in bars]
    assert heights == sorted(heights, reverse=True), "later panes are drawn higher"
    assert "6 & <more>" in "".join(root.itertext())
    assert render_pane_diagram(scene) == render_pane_diagram(scene)


def test_a_curve_goes_through_its_points() -> None:
    svg = render_curves(
        "t", ("x", "y"), [Curve("one", [CurvePoint(0, 0), CurvePoint(10, 5, "here"), CurvePoint(20, 5)])]
    )
    root = ET.fromstring(svg)
    (line,) = (shape for shape in root.iter() if shape.get("class") == "curve")
    ys = [float(point.split(",")[1]) for point in (line.get("points") or "").split()]
    assert ys[0] > ys[1] == ys[2]
    assert "here" in "".join(root.itertext())
