"""The page of a stream: the panes of its log, its charts, its account and its plan."""

import html
import re

from starlette.testclient import TestClient
from tests.platform.console.conftest import NOW_MS, PageReader, record_batch, start_stream
from tests.platform.console.pane_tables import build_pane, write_panes

from penstock.platform.console.stream_view import draw_charts, list_fates
from penstock.platform.control import ControlStore
from penstock.platform.control.batch_history import read_batches_since, sum_steps
from penstock.platform.settings import Settings

HOSTILE_KEY = "<b>'\"&"


def find_bars(page: str) -> list[tuple[str, str]]:
    """Return the kind and the tip of each pane in a page."""
    pattern = r'<a href="[^"]*" data-tip="([^"]*)"[^>]*>\s*<rect class="hit"[^>]*>\s*<rect class="(\w+)"'
    return [(kind, html.unescape(tip)) for tip, kind in re.findall(pattern, page)]


def test_the_panes_of_the_selected_key_are_drawn_by_timing(
    store: ControlStore, settings: Settings, read_page: PageReader
) -> None:
    start_stream(store, "sensor_minute")
    write_panes(
        settings.home,
        build_pane("a", 20.5, 3, 130, "early"),
        build_pane("a", 20.5, 3, 100, "on_time", "retract"),
        build_pane("a", 21.25, 3, 100, "on_time"),
        build_pane("b", 30.0, 3, 90, "on_time"),
        build_pane("a", 22.0, 3, 20, "late"),
    )
    drawn = [("retract", "retracts 20.5"), *(("early", "early: 20.5"), ("on_time", "on time: 21.25"))]
    assert find_bars(read_page("/streams/sensor_minute")) == [*drawn, ("late", "late: 22")]
    assert find_bars(read_page("/streams/sensor_minute", key='["b"]')) == [("on_time", "on time: 30")]


def test_a_pane_leads_to_its_rows(
    store: ControlStore, settings: Settings, client: TestClient, read_page: PageReader
) -> None:
    start_stream(store, "sensor_minute")
    write_panes(
        settings.home,
        build_pane(HOSTILE_KEY, 20.5, 3, 130, "early"),
        build_pane(HOSTILE_KEY, 99.5, 4, 130, "early"),
        build_pane("b", 30.0, 3, 90, "on_time"),
    )
    page = read_page("/streams/sensor_minute")
    assert HOSTILE_KEY not in page
    link = html.unescape(re.findall(r'<a href="(/tables/[^"]+)" data-tip="early: 20.5"', page)[0])
    rows = client.get(link).text
    assert HOSTILE_KEY not in rows
    assert "20.5" in rows
    assert "99.5" not in rows
    assert ">30<" not in rows


def test_the_diagram_says_when_there_is_nothing_to_draw(store: ControlStore, read_page: PageReader) -> None:
    start_stream(store, "sensor_minute")
    page = read_page("/streams/sensor_minute", span="15")
    assert "No pane in this interval" in page
    assert "No batch in the last 15 minutes" in page


def test_a_stage_without_a_log_shows_its_newest_panes(
    store: ControlStore, settings: Settings, read_page: PageReader
) -> None:
    start_stream(store, "device_and_site")
    row = {**build_pane("a", 20.5, 3, 130, "on_time"), "kind": "insert"}
    write_panes(settings.home, row, table="latest/device_and_site")
    page = read_page("/streams/device_and_site", stage="device_and_site")
    assert find_bars(page) == [("on_time", "on time: 20.5")]
    assert "only the newest pane of each window is known" in page


def test_the_account_adds_up(store: ControlStore, read_page: PageReader) -> None:
    start_stream(store, "sensor_minute")
    for number in range(3):
        record_batch(store, "sensor_minute", number, 30_000 - number)
    read, fates = list_fates(read_batches_since(store, "sensor_minute", 0))
    assert read == sum(fate.records for fate in fates) == 300
    assert {fate.name: fate.records for fate in fates} == {
        "accepted": 264,
        "late": 21,
        "quarantined": 9,
        "duplicate": 6,
        "filtered": 0,
    }
    page = read_page("/streams/sensor_minute")
    assert "3 batches of the last 5 min" in page
    assert "dropped as duplicate" in page


def test_the_steps_of_a_chart_hold_the_batches_of_their_time(store: ControlStore) -> None:
    for number, age_ms in enumerate((55_000, 54_000, 25_000)):
        record_batch(store, "sensor_minute", number, age_ms)
    batches = read_batches_since(store, "sensor_minute", NOW_MS - 60_000)
    steps = list(sum_steps(batches, NOW_MS - 60_000, NOW_MS, 10_000))
    assert [step.records_per_second for step in steps] == [20.0, 0.0, 0.0, 10.0, 0.0, 0.0]
    assert [step.batch_ms_p50 for step in steps] == [100.0, None, None, 102.0, None, None]
    assert [step.batch_ms_p99 for step in steps] == [101.0, None, None, 102.0, None, None]
    assert [step.lag_records for step in steps] == [4_321, None, None, 4_321, None, None]


def test_a_chart_has_a_gap_where_there_is_no_figure(store: ControlStore) -> None:
    for number, age_ms in enumerate((55_000, 54_000, 25_000)):
        record_batch(store, "sensor_minute", number, age_ms)
    batches = read_batches_since(store, "sensor_minute", NOW_MS - 60_000)
    charts = {chart.title: chart for chart in draw_charts(batches, NOW_MS - 60_000, NOW_MS)}
    assert len(re.findall("<polyline", charts["Batch time"].svg)) == 4  # two runs of two curves
    assert charts["Consumer lag, in records"].legend == [("", "4,321")]
    assert len(re.findall("<polyline", charts["Records read"].svg)) == 1


def test_the_plan_answers_the_four_questions(read_page: PageReader) -> None:
    page = read_page("/streams/sensor_minute")
    for text in ("what is computed", "Fixed windows of 1 minute.", "read topic sensors", "driver, 1 task"):
        assert text in page


def test_an_archive_has_no_plan_and_no_panes(store: ControlStore, read_page: PageReader) -> None:
    start_stream(store, "archive-sensors")
    page = read_page("/streams/archive-sensors")
    assert "raw/sensors" in page
    assert "Panes as they appear" not in page


def test_recent_errors_are_those_of_the_stream_with_the_traceback(
    settings: Settings, read_page: PageReader
) -> None:
    logs = settings.home / "logs"
    logs.mkdir(parents=True)
    (logs / "host.log").write_text(
        "2026-11-20 09:00:00,000 ERROR   [word_count] Batch failed\n"
        "Traceback of another stream\n"
        "2026-11-20 09:00:01,000 ERROR   [sensor_minute] Batch failed: tax raised <b>\n"
        '  File "my_pipeline.py", line 4, in tax\n'
        "2026-11-20 09:00:02,000 INFO    [sensor_minute] Batch committed\n",
        "utf-8",
    )
    page = read_page("/streams/sensor_minute")
    assert "Batch failed: tax raised &lt;b&gt;" in page
    assert html.escape('File "my_pipeline.py"').replace("&quot;", "&#34;") in page
    assert "another stream" not in page
    assert "Batch committed" not in page
