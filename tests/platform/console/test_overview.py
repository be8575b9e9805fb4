"""The overview: what is wrong first, the figures of each stream, the graph, and the search."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from starlette.testclient import TestClient
from tests.platform.console.conftest import NOW_MS, PageReader, record_batch, start_stream

from penstock.engine.host.control import DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.graph_layout import NODE_HEIGHT, lay_out_graph
from penstock.platform.console.pages.overview import list_problems, sum_streams
from penstock.platform.console.stack_graph import MAX_STREAMS, build_stack_graph
from penstock.platform.console.stream_ends import find_stream_ends
from penstock.platform.console.stream_table import MAX_ROWS, StreamRow, build_stream_rows, search_streams
from penstock.platform.control import ControlStore
from penstock.platform.control.recent_flows import read_recent_flows
from penstock.platform.settings import Settings

HOSTILE = "<script>alert('x')</script>"


def test_an_empty_store_says_how_to_start(read_page: PageReader) -> None:
    page = read_page("/")
    assert "No stream to draw" in page
    assert "penstock stream start NAME" in page
    assert "of 0 started" in page


def test_the_figures_are_those_of_the_last_minute(context: ConsoleContext, store: ControlStore) -> None:
    start_stream(store, "sensor_minute")
    for number, age_ms in enumerate((90_000, 40_000, 20_000, 1_000)):
        record_batch(store, "sensor_minute", number, age_ms)
    row = next(row for row in build_stream_rows(context.stack.read()) if row.name == "sensor_minute")
    assert row == StreamRow(
        "sensor_minute",
        "running",
        "good",
        needs_attention=False,
        records_per_second=300 / 60,
        lag_records=4_321,
        watermark_delay_ms=11_000,
        batch_ms_p99=103.0,
        late_share=21 / 300,
        invalid_share=9 / 300,
        committed_at_ms=NOW_MS - 1_000,
    )


def test_the_page_shows_figures_with_separators_and_units(store: ControlStore, read_page: PageReader) -> None:
    start_stream(store, "sensor_minute")
    record_batch(store, "sensor_minute", 0, 1_000)
    row = re.search(r'<tr data-key="sensor_minute".*?</tr>', read_page("/"), re.DOTALL)
    assert row is not None
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row[0], re.DOTALL)]
    assert cells == ["running", "1.7 /s", "4,321", "11.0 s", "100 ms", "7.0 %", "3.0 %", cells[-1]]
    assert cells[-1] == "2027-01-15 07:59:59 UTC"  # the script shows an age in its place


def test_what_is_wrong_comes_first(context: ConsoleContext, store: ControlStore) -> None:
    for name in ("hashtags", "sensor_minute", "word_count"):
        start_stream(store, name)
    lease = store.read_lease("word_count")
    assert lease is not None
    failed = StreamHealth("word_count", StreamState.FAILED, "tax raised\nTraceback …", NOW_MS, lease.epoch)
    store.report_health(failed)
    reading = context.stack.read()
    rows = build_stream_rows(reading)
    assert [row.name for row in rows][:3] == ["word_count", "activity", "archive-access-log"]
    assert [(one.subject, one.state, one.reason) for one in list_problems(reading, rows)] == [
        ("word_count", "failed", "tax raised")
    ]
    assert (sum_streams(reading, rows).running, sum_streams(reading, rows).started) == (2, 3)


def test_a_stream_that_should_run_and_has_no_host_needs_attention(
    store: ControlStore, read_page: PageReader
) -> None:
    store.set_desired_state("sensor_minute", DesiredRunState.RUNNING, NOW_MS)
    page = read_page("/")
    assert "1 thing needs attention" in page
    assert "should be running, but no host runs it" in page


def test_text_of_a_failure_is_escaped(store: ControlStore, read_page: PageReader) -> None:
    start_stream(store, "sensor_minute")
    store.report_health(StreamHealth("sensor_minute", StreamState.FAILED, HOSTILE, NOW_MS, 9))
    for path in ("/", "/streams/sensor_minute"):
        page = read_page(path)
        assert HOSTILE not in page
        assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page


def test_a_search_is_escaped_too(read_page: PageReader) -> None:
    assert '"><script>' not in read_page("/", q='"><script>')


def test_five_hundred_streams_are_searched_on_the_server() -> None:
    template = StreamRow("", "running", "good", needs_attention=False)
    rows = [replace(template, name=f"stream_{number:03}") for number in range(500)]
    rows[7] = replace(rows[7], state="failed", tone="bad", note="disk full", needs_attention=True)
    everything = search_streams(rows, "", "started")
    assert (len(everything.rows), everything.found) == (MAX_ROWS, 500)
    assert [row.name for row in search_streams(rows, "disk stream", "started").rows] == ["stream_007"]
    assert search_streams(rows, "stream_00", "running").counts == {
        "started": 10,
        "attention": 1,
        "running": 9,
        "stopped": 0,
        "unstarted": 0,
    }


def test_the_graph_has_what_flows_on_each_edge(context: ConsoleContext, store: ControlStore) -> None:
    start_stream(store, "sensor_minute")
    record_batch(store, "sensor_minute", 0, 10_000)
    rows = [row for row in build_stream_rows(context.stack.read()) if row.name == "sensor_minute"]
    flows = read_recent_flows(store, {"sensor_minute": NOW_MS - 60_000}, NOW_MS)
    graph = build_stack_graph(rows, {"sensor_minute": find_stream_ends("sensor_minute")}, flows)
    assert [(edge.start, edge.end, edge.per_second) for edge in graph.edges] == [
        ("topic:sensors", "stream:sensor_minute", 100 / 60),
        ("stream:sensor_minute", "table:latest/sensor_minute", 12 / 60),
        ("stream:sensor_minute", "table:panes/sensor_minute", 0.0),
    ]


@pytest.mark.parametrize("streams", [1, 3, MAX_STREAMS])
def test_no_two_nodes_of_the_graph_overlap(streams: int) -> None:
    names = ["sensor_minute", "device_and_site", "hashtags", "word_count", "trending", "visits", "zeitgeist"]
    chosen = [names[number % len(names)] for number in range(min(streams, len(names)))]
    rows = [StreamRow(name, "running", "good", needs_attention=False) for name in chosen]
    layout = lay_out_graph(build_stack_graph(rows, {name: find_stream_ends(name) for name in chosen}, {}))
    corners = sorted((placed.x, placed.y) for placed in layout.nodes)
    for (x, y), (other_x, other_y) in pairwise(corners):
        assert x != other_x or other_y - y > NODE_HEIGHT
    assert max(y for _, y in corners) + NODE_HEIGHT < layout.height


def test_an_unknown_page_says_so(client: TestClient) -> None:
    answer = client.get("/streams/sensor_minut")
    assert answer.status_code == 404
    assert "sensor_minute" in answer.text


def test_a_store_that_cannot_be_read_is_named(
    settings: Settings, store: ControlStore, client: TestClient
) -> None:
    store.close()
    for file in settings.home.glob("control.db*"):
        file.write_bytes(b"this is no database" * 100)
    answer = client.get("/")
    assert answer.status_code == 503
    assert "The control store does not answer" in answer.text
