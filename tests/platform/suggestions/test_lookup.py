"""The newest whole minute of the table answers, over HTTP and in a page where somebody types."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import expect, sync_playwright
from tests.browser import CHROMIUM_ARGUMENTS

from penstock.platform.errors import PortTakenError, TableNotFoundError
from penstock.platform.suggestions.page_server import serve_suggestions
from penstock.platform.suggestions.suggestion_lookup import SuggestionLookup

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
INSTANT = pa.timestamp("us", tz="UTC")
Row = tuple[int, str, list[str]]
"""Seconds after noon at which a minute begins, what is typed, what is suggested."""


def write(table: Path, rows: list[Row]) -> None:
    starts = [NOON + timedelta(seconds=after) for after, _, _ in rows]
    columns = {
        "typed": pa.array([typed for _, typed, _ in rows]),
        "window_start": pa.array(starts, INSTANT),
        "window_end": pa.array([start + timedelta(minutes=1) for start in starts], INSTANT),
        "suggestions": pa.array([tags for _, _, tags in rows], pa.list_(pa.string())),
        "timing": pa.array(["early"] * len(rows)),
    }
    write_deltalake(table, pa.table(columns), mode="overwrite")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Windows of a minute that begin every ten seconds; the newest has just begun."""
    rows: list[Row] = [
        (-10, "ra", ["rage"]), (0, "ra", ["raina", "rainb"]), (10, "ra", ["raina", "rainb", "rainc"]),
        (50, "ra", ["rainz"]), (60, "ra", ["rainy"]), (60, "so", ["songa"]), (10, "rainbows", ["rainbows1"]),
    ]  # fmt: skip
    write(tmp_path / "hashtags", rows)
    return tmp_path / "hashtags"


@pytest.fixture
def address(table: Path) -> Iterator[str]:
    with serve_suggestions(SuggestionLookup(str(table)), 0) as found:
        yield found


def answer(address: str, typed: str) -> dict[str, object]:
    with urlopen(f"{address}suggest?prefix={typed}", timeout=10) as response:
        found: dict[str, object] = json.load(response)
    return found


def test_the_window_that_is_whole_answers_and_not_the_one_that_has_just_begun(address: str) -> None:
    found = answer(address, "ra")
    assert found["suggestions"] == ["raina", "rainb", "rainc"]
    assert found["window_start"] == "2026-01-05T12:00:10+00:00"


def test_what_is_new_is_found_where_it_has_only_begun(address: str) -> None:
    assert answer(address, "so")["suggestions"] == ["songa"]


def test_a_beginning_longer_than_any_in_the_table_is_what_goes_on_so(address: str) -> None:
    assert answer(address, "rainb")["suggestions"] == ["rainb"]
    assert answer(address, "zz")["suggestions"] == []


def test_a_new_commit_is_the_next_answer(address: str, table: Path) -> None:
    before = answer(address, "ra")
    write(table, [(70, "ra", ["raven"])])
    after = answer(address, "ra")
    assert (before["version"], after["version"]) == (0, 1)
    assert after["suggestions"] == ["raven"]


def test_another_path_is_not_found(address: str) -> None:
    with pytest.raises(HTTPError, match="404") as refused:
        urlopen(f"{address}elsewhere", timeout=10)
    refused.value.close()


def test_a_port_that_is_taken_and_a_table_that_is_not_there_are_told(table: Path, address: str) -> None:
    taken = int(address.rstrip("/").rpartition(":")[2])
    with (
        pytest.raises(PortTakenError, match="--port 0"),
        serve_suggestions(SuggestionLookup(str(table)), taken),
    ):
        pass
    with pytest.raises(TableNotFoundError, match="penstock stream start hashtags"):
        SuggestionLookup(str(table.with_name("nothing")))


def test_who_types_sees_the_suggestions_change(address: str, table: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(30_000)
        expect.set_options(timeout=30_000)
        page.goto(address)
        page.get_by_label("type a hashtag").press_sequentially("#ra")
        expect(page.get_by_role("listitem")).to_have_text(["#raina", "#rainb", "#rainc"])
        page.get_by_label("type a hashtag").press_sequentially("inb")
        expect(page.get_by_role("listitem")).to_have_text(["#rainb"])
        write(table, [(70, "ra", ["rainbow"]), (70, "so", ["song"])])
        expect(page.get_by_role("listitem")).to_have_text(["#rainbow"])
        page.get_by_label("type a hashtag").fill("so")
        expect(page.get_by_role("listitem")).to_have_text(["#song"])
        expect(page.locator("#status")).to_have_text(re.compile("12:02:10 UTC, early"))
        browser.close()
