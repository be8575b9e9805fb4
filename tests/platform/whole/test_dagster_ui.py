"""Dagster's UI in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser import launch_chromium
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

pytestmark = pytest.mark.whole

PAGE_TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    """A page in headless Chromium; skipped by name where it is not installed."""
    with launch_chromium() as browser:
        page = browser.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(PAGE_TIMEOUT_MS)
        expect.set_options(timeout=PAGE_TIMEOUT_MS)
        yield page


@pytest.fixture
def page(browser_page: Page, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    """The page, with a screenshot at the end of each test."""
    yield browser_page
    browser_page.screenshot(path=tmp_path / "end.png")


def test_the_graph_shows_topic_stream_and_tables(running: ScratchStack, page: Page) -> None:
    page.goto(f"{running.ui}/asset-groups")
    for group in ("topics", "streams", "latest", "panes"):
        expect(page.get_by_text(group, exact=True).first).to_be_visible()
    page.goto(f"{running.ui}/assets/streams/sensor_minute?view=lineage&lineageScope=neighbors")
    for node in ("sensors", "sensor_minute"):
        expect(page.get_by_text(node, exact=True).last).to_be_visible()
    expect(page.get_by_text("latest").first).to_be_visible()


def test_a_materialization_shows_the_figures_of_its_batches(running: ScratchStack, page: Page) -> None:
    page.goto(f"{running.ui}/assets/streams/sensor_minute")
    expect(page.get_by_text("Mean temperature per device and minute", exact=False)).to_be_visible()
    for name in (
        "batch",
        "rows",
        "records_read",
        "watermark",
        "consumer_lag_records",
        "watermark_delay_seconds",
    ):
        row = page.get_by_role("row").filter(has=page.get_by_text(name, exact=True))
        expect(row).to_contain_text(re.compile(r"\d"))
    page.get_by_role("button", name="Plots").click()
    expect(page.locator("canvas").first).to_be_visible()


def test_a_check_that_never_ran_is_a_warning_in_the_graph(running: ScratchStack, page: Page) -> None:
    """It was a green tick beside `0 / 4 Passed`."""
    poll_until(
        lambda: running.materialized("panes", "sensor_minute"), PATIENCE_S, "the table to be materialized"
    )
    page.goto(f"{running.ui}/assets/panes/sensor_minute?view=checks")
    expect(page.get_by_text("not checked yet: ", exact=False).first).to_be_visible(timeout=120_000)


def test_checks_are_listed_with_their_reasons(running: ScratchStack, page: Page) -> None:
    page.goto(f"{running.ui}/assets/latest/sensor_minute?view=checks")
    expect(page.get_by_text("device_values_to_not_be_null").first).to_be_visible()
    expect(page.get_by_text("Every mean belongs to a device.", exact=False)).to_be_visible()


def test_a_check_result_stays_visible_after_a_materialization(running: ScratchStack, page: Page) -> None:
    running.launch("measure_tables")
    before = running.materialized("latest", "sensor_minute")
    poll_until(
        lambda: running.materialized("latest", "sensor_minute") > before,
        PATIENCE_S,
        "the table to be materialized",
    )
    page.goto(f"{running.ui}/assets/latest/sensor_minute?view=checks&checkDetail=no_sudden_change")
    expect(page.get_by_text("Evaluation result", exact=True)).to_be_visible()
    # Statistics are of whole hours, and the stack may not have run for one.
    expect(page.get_by_text(re.compile("^Passed$|no interval is complete")).first).to_be_visible()


def test_columns_of_a_table_are_shown(running: ScratchStack, page: Page) -> None:
    page.goto(f"{running.ui}/assets/latest/sensor_minute")
    for column in ("device", "temperature", "readings", "window_start"):
        expect(page.get_by_text(column, exact=True).first).to_be_visible()


def test_a_stream_is_started_from_the_launchpad(running: ScratchStack, page: Page) -> None:
    running.run_checked("stream", "drain", "sensor_minute")
    batch = running.batch()
    page.goto(f"{running.ui}/locations/penstock/jobs/stream_start/playground")
    page.locator(".CodeMirror").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("stream: sensor_minute")
    page.keyboard.press("Escape")  # what the editor offers to complete
    page.get_by_role("button", name="Launch Run").click()
    page.wait_for_url("**/runs/**")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=60_000)
    poll_until(lambda: running.batch() > batch, PATIENCE_S, "a batch of the stream that was started")
