"""The pages of expectations and statistics that a host serves."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from prometheus_client import CollectorRegistry
from tests.browser import launch_chromium
from tests.patience import PATIENCE_S
from tests.quality.expectations.test_table_checks import FAILED, MINUTE, NOON, build_result

from penstock.engine.host_settings import HostSettings
from penstock.platform.host.http_server import serve_http
from penstock.platform.host.quality_pages import QUALITY_URL_PREFIX, file_url, quality_url
from penstock.platform.settings import load_settings
from penstock.quality.expectations.report_page import SuiteReport, write_report_page
from penstock.quality.expectations.suite import Expectation, Suite
from penstock.quality.statistics.plots import publish_plots
from penstock.quality.statistics.series import StatisticsPoint

HttpRequest = Callable[..., tuple[int, str]]
ROWS = "latest-minutes/final/n_set.jsonl"
DOCS, PLOTS = "docs/index.html", "statistics/latest/minutes.html"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A home folder with a page, the rows that it links to, and private files."""
    folder = tmp_path / "home" / "quality"
    (folder / ROWS).parent.mkdir(parents=True)
    (folder / ROWS).write_text('{"n": 7}\n', "utf-8")
    (folder / "latest-minutes" / "final.json").write_text("{}", "utf-8")
    (folder.parent / "secret.jsonl").write_text("secret", "utf-8")
    (folder / "out.jsonl").symlink_to(folder.parent / "secret.jsonl")
    failed = replace(FAILED, rows=str(folder / ROWS))
    suite = Suite("latest/minutes", (Expectation(FAILED.type, {"column": "n"}, FAILED.name),))
    points = [StatisticsPoint(NOON + number * MINUTE, {"rows": 5.0 + number}) for number in range(3)]
    plots = publish_plots(
        folder / PLOTS, suite.subject, {"By windows": points}, [], f"../../{DOCS}#{suite.subject}"
    )
    write_report_page(
        folder / "docs", [SuiteReport(suite, [build_result(NOON + MINUTE, failed)], plots_file=plots)]
    )
    return folder


@pytest.fixture
def page() -> Iterator[Page]:
    """A page in headless Chromium; skipped by name where it is not installed."""
    with launch_chromium() as browser:
        yield browser.new_page()


def test_in_a_browser_plots_link_to_expectations_and_rows(folder: Path, page: Page) -> None:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    with serve_http(HostSettings(metrics_port=0), CollectorRegistry(), dict, folder) as port:
        page.goto(f"http://127.0.0.1:{port}{QUALITY_URL_PREFIX}{PLOTS}")
        line = page.locator("#rows polyline").bounding_box()
        frame = page.locator("#rows svg").bounding_box()
        assert line is not None
        assert frame is not None
        assert line["width"] > 0.9 * frame["width"]
        assert line["height"] > 0.5 * frame["height"]
        expect(page.locator("#rows figcaption").first).to_have_text("rows7, usually 6")
        page.get_by_role("link", name="expectations").click()
        expect(page.get_by_role("heading", name="latest/minutes")).to_be_in_viewport()
        page.get_by_role("link", name="statistics over time").click()
        expect(page.locator("#rows polyline")).to_be_visible()
        page.go_back()
        page.get_by_role("link", name="unexpected rows").click()
        expect(page.get_by_text('{"n": 7}')).to_be_visible()
    assert errors == []


@pytest.fixture
def send_request(folder: Path) -> Iterator[HttpRequest]:
    with serve_http(HostSettings(metrics_port=0), CollectorRegistry(), dict, folder) as port:

        def send(path: str, host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str]:
            connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            connection.request(method, path, headers={"Host": f"{host}:{port}"})
            response = connection.getresponse()
            content = response.read().decode()
            connection.close()
            return response.status, content

        yield send


def test_the_page_and_its_rows_are_served(send_request: HttpRequest, folder: Path) -> None:
    status, page = send_request(file_url(QUALITY_URL_PREFIX, folder, folder / "docs" / "index.html"))
    assert status == 200
    assert f"<a href='../{ROWS}'>unexpected rows</a>" in page
    assert send_request(f"{QUALITY_URL_PREFIX}{ROWS}") == (200, '{"n": 7}\n')


@pytest.mark.parametrize(
    "path",
    [
        *("docs", "docs/", "docs/other.html", "latest-minutes/final.json", "out.jsonl"),
        *("../secret.jsonl", "docs/../../secret.jsonl", "%2e%2e/secret.jsonl", "/etc/passwd"),
    ],
)
def test_no_other_file_is_served(send_request: HttpRequest, path: str) -> None:
    assert send_request(f"{QUALITY_URL_PREFIX}{path}")[0] == 404


def test_the_folder_leads_to_the_page(send_request: HttpRequest) -> None:
    assert send_request(QUALITY_URL_PREFIX)[0] == 302


def test_foreign_host_names_and_other_methods_are_refused(send_request: HttpRequest) -> None:
    for path in (f"{QUALITY_URL_PREFIX}{ROWS}", "/health", "/metrics"):
        assert send_request(path, host="elsewhere.example")[0] == 403
        assert send_request(path, method="POST")[0] == 405
    assert send_request("/live", host="elsewhere.example")[0] == 200


def test_pages_are_linked_on_a_single_machine_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read_quality_url() -> str:
        return quality_url(load_settings().settings)

    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_HOST__METRICS_PORT", "9999")
    assert read_quality_url() == "http://127.0.0.1:9999/quality/"
    monkeypatch.setenv("PENSTOCK_HOST__METRICS_PORT", "0")
    assert read_quality_url() == ""
    monkeypatch.setenv("PENSTOCK_HOST__METRICS_PORT", "9999")
    monkeypatch.setenv("PENSTOCK_CONTROL_URL", "postgresql://penstock@postgres:5432/penstock")
    assert read_quality_url() == ""
