"""The page of a table's figures over time."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from penstock.quality.expectations.report_page import SuiteReport, render_page
from penstock.quality.expectations.suite import Suite
from penstock.quality.statistics.change_detection import SuddenChange
from penstock.quality.statistics.plots import HEIGHT_PX, MARGIN_PX, WIDTH_PX, publish_plots, render_plots
from penstock.quality.statistics.series import StatisticsPoint

HOUR = 3_600_000
VALUES = [4.0, 2.0, 6.0]
POINTS = [
    StatisticsPoint(number * HOUR, {"rows": value, "null_<b>": 0.25}) for number, value in enumerate(VALUES)
]
SUDDEN_CHANGE = SuddenChange("rows", 2 * HOUR, 6.0, 3.0, 9.0)
SUBJECT = "latest/minutes"


def find_svg(page: str, figure: str) -> ET.Element:
    match = re.search(f"<figure id='{re.escape(figure)}'>.*?(<svg.*?</svg>)", page, re.DOTALL)
    assert match
    return ET.fromstring(match[1])


def test_each_interval_is_a_point_of_the_line() -> None:
    svg = find_svg(render_plots(SUBJECT, {"By windows": POINTS}, []), "rows")
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in svg.iter("circle")]
    low, high = HEIGHT_PX - MARGIN_PX, MARGIN_PX
    assert dots == [(MARGIN_PX, HEIGHT_PX / 2), (WIDTH_PX / 2, low), (WIDTH_PX - MARGIN_PX, high)]
    (line,) = svg.iter("polyline")
    assert [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()] == dots
    assert [title.text for title in svg.iter("title")] == [
        "1970-01-01 00:00: 4", "1970-01-01 01:00: 2", "1970-01-01 02:00: 6"
    ]  # fmt: skip


def test_a_sudden_change_is_highlighted_and_a_constant_is_centered() -> None:
    page = render_plots(SUBJECT, {"By windows": POINTS}, [SUDDEN_CHANGE])
    assert "sudden change: rows is 6, usually 3 (9.0 deviations)" in page
    assert [dot.get("class") for dot in find_svg(page, "rows").iter("circle")] == [None, None, "failed"]
    calm = list(find_svg(page, "null_&lt;b&gt;").iter("circle"))
    assert {(dot.get("class"), dot.attrib["cy"]) for dot in calm} == {(None, f"{HEIGHT_PX / 2:.1f}")}


def test_the_page_loads_nothing_and_links_to_the_report(tmp_path: Path) -> None:
    file = tmp_path / "statistics" / f"{SUBJECT}.html"
    assert "over time" not in render_page(
        [SuiteReport(Suite(SUBJECT, ()), plots_file=file)], tmp_path / "docs"
    )
    back = f"../../docs/index.html#{SUBJECT}"
    page = publish_plots(file, SUBJECT, {"By windows": POINTS, "By clocks": []}, [], back).read_text("utf-8")
    assert f"<a href='{back}'>" in page
    assert "No interval is complete yet." in page
    assert not re.search(r"src=|@import|url\(|<script", page)
    checks = render_page([SuiteReport(Suite(SUBJECT, ()), plots_file=file)], tmp_path / "docs")
    assert f"<a href='../statistics/{SUBJECT}.html'>statistics over time</a>" in checks
