"""The console in a real browser, beside the tables and the ledger of the same stack."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser import launch_chromium
from tests.patience import PATIENCE_S
from tests.platform.whole.accessibility import find_violations, load_axe
from tests.platform.whole.scratch_stack import ScratchStack

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.platform.console.stream_view import FATE_LABELS
from penstock.platform.services.operator_actions import read_actions

pytestmark = pytest.mark.whole

PAGES = (
    "/",
    "/?state=unstarted",
    "/streams/sensor_minute",
    "/streams/sensor_minute/replay?results=beside",
    "/streams/sensor_minute/upgrade",
    "/topics/sensors",
    "/tables/panes/sensor_minute",
    "/quarantine",
    "/quarantine/ad-clicks?state=any",
)
PAGE_TIMEOUT_MS = PATIENCE_S * 1_000


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page in headless Chromium that fails the test on any error of a script or of the content policy."""
    with launch_chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(PAGE_TIMEOUT_MS)
        expect.set_options(timeout=PAGE_TIMEOUT_MS)
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        yield page
        assert problems == []


def read_account(page: Page) -> dict[str, int]:
    """Return the counts of the account that a page shows."""
    rows = page.locator("#live_account tr")
    texts = [rows.nth(number).locator("th, td").all_inner_texts() for number in range(rows.count())]
    return {cells[0]: int(cells[1].replace(",", "")) for cells in texts}


def test_a_stream_shows_what_its_tables_and_its_ledger_have(running: ScratchStack, page: Page) -> None:
    running.run_checked("stream", "drain", "sensor_minute")
    page.goto(f"{running.console}/streams/sensor_minute?span=360")
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#live_state .state").first).to_have_text("drained")
    ledger = running.table("ledger", "sensor_minute")
    counts = {name: sum(ledger.column(name).to_pylist()) for name in ("read", *RECORD_FATES)}
    labels = {"read": "read", **FATE_LABELS}
    assert read_account(page) == {labels[name]: count for name, count in counts.items()}
    assert counts["read"] == sum(counts[name] for name in RECORD_FATES) > 0
    key = page.locator("select[name=key]").locator("option:checked").inner_text()
    rows = [row for row in running.table("panes", "sensor_minute").to_pylist() if row["device"] == key]
    for timing in ("early", "on_time", "late"):
        bars = page.locator(f"#live_panes .diagram a rect.{timing}").count()
        assert bars == sum((row["timing"], row["kind"]) == (timing, "insert") for row in rows), timing
    assert page.locator("#live_panes .diagram rect.retract").count() == sum(
        row["kind"] == "retract" for row in rows
    )


def test_a_pane_leads_to_its_rows(running: ScratchStack, page: Page) -> None:
    page.locator("#live_panes .diagram a").last.click()
    expect(page.get_by_role("heading", name="panes/sensor_minute")).to_be_visible()
    rows = page.locator("#live_rows tbody tr")
    assert 0 < rows.count() <= 50
    shown = {(cells := rows.nth(number).locator("td").all_inner_texts())[0] for number in range(rows.count())}
    assert len(shown) == 1
    assert len(cells) > 3


def test_a_stream_is_started_by_its_button(running: ScratchStack, page: Page) -> None:
    page.goto(f"{running.console}/streams/sensor_minute")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#live_state .state").first).to_have_text("running")
    assert [(one.action, one.origin) for one in read_actions(running.home)][-1] == ("stream start", "console")


def test_the_overview_is_searched_and_steered_by_the_keyboard(running: ScratchStack, page: Page) -> None:
    page.goto(running.console)
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#live_streams tbody tr")).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("archive")
    expect(page.locator("#live_streams tbody tr")).to_have_count(1)
    expect(page.locator("input[type=search]")).to_be_focused()
    assert "q=archive" in page.url


def test_a_topic_shows_the_records_that_the_broker_has(running: ScratchStack, page: Page) -> None:
    page.goto(f"{running.console}/topics/sensors?from=0@0")
    first = page.locator("#live_records tbody tr").first
    partition, offset, key, value = next(each for each in running.records("sensors") if each[0] == 0)
    expect(first.locator("td").nth(1)).to_have_text(str(partition))
    expect(first.locator("td").nth(2)).to_have_text(str(offset))
    expect(first.locator("td").nth(3)).to_have_text(key.decode())
    expect(first.locator("td").nth(4)).to_have_text(value.decode().replace(": ", ":").replace(", ", ","))


def test_a_dead_letter_is_repaired_in_its_form_and_sent_once(
    running: ScratchStack, page: Page, tmp_path: Path
) -> None:
    invalid = '{"id":"1","impression":"i","at":"soon"}'
    repaired = invalid.replace('"soon"', "1")
    source = tmp_path / "clicks.jsonl"
    source.write_text(f"{invalid}\n", "utf-8")
    running.run("ingest", "json-lines", "--path", str(source), "--topic", "ad-clicks")
    page.goto(f"{running.console}/quarantine")
    page.get_by_role("link", name="ad-clicks").click()
    expect(page.locator("#live_reasons tbody tr")).to_contain_text("wrong_type:at")
    page.locator("#live_records").get_by_role("link", name="dead-letters/").click()
    expect(page.get_by_label("Value to send")).to_have_value(invalid)
    page.get_by_label("Value to send").fill(repaired)
    page.get_by_role("button", name="Check and replay").click()
    page.get_by_label("Why").fill("a repair")
    page.get_by_role("button", name="Replay 1 record").click()
    expect(page.locator("main > [role=status]")).to_have_text("Done: 1 decided, 1 sent.")
    expect(page.locator("#live_history tbody tr")).to_contain_text("a repair")
    assert running.values("ad-clicks") == [repaired.encode()]


def test_no_page_violates_wcag_aa(running: ScratchStack, page: Page) -> None:
    axe = load_axe()
    page.goto(f"{running.console}/quarantine/ad-clicks?state=any")
    record = page.locator("#live_records").get_by_role("link").first.get_attribute("href")
    violations = []
    for path in (*PAGES, str(record)):
        page.goto(f"{running.console}{path}")
        expect(page.locator("main")).not_to_be_empty()
        violations += [f"{path}: {violation}" for violation in find_violations(page, axe)]
    assert violations == []
