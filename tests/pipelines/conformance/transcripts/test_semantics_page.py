"""`SEMANTICS.md` links every semantics case, and every case that it links exists."""

import re
from pathlib import Path

import yaml

CASES_FILE = Path(__file__).parent / "semantics_cases.yaml"
PAGE = Path(__file__).parents[4] / "pipelines" / "SEMANTICS.md"
CASE_ID = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`")

SHORTEST_LONG_NAME = 4
"""Underscores of a name that can only be a case; shorter ones may be words of the API."""


def test_the_page_names_every_case() -> None:
    cases = {case["id"] for case in yaml.safe_load(CASES_FILE.read_text())["cases"]}
    named = set(CASE_ID.findall(PAGE.read_text()))
    assert cases - named == set()


def test_every_case_that_the_page_names_exists() -> None:
    cases = {case["id"] for case in yaml.safe_load(CASES_FILE.read_text())["cases"]}
    named = {name for name in CASE_ID.findall(PAGE.read_text()) if name.count("_") >= SHORTEST_LONG_NAME}
    assert named - cases == set()
