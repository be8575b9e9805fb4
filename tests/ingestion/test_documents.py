"""YAML files that people write: what is said twice at one place is refused, as one of the two would be lost."""

from pathlib import Path

import pytest

from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import DocumentError

DUPLICATE_KEYS = [
    ("a: 1\nb: 2\na: 3", "'a' is said twice, at line 3"),
    ("a:\n  - {b: 1, c: 2, b: 1}", "'b' is said twice, at line 2"),
    ("1: a\n1: b", "'1' is said twice, at line 2"),
]
UNIQUE_KEYS = [
    ("a: {b: 1}\nc: {b: 2}", {"a": {"b": 1}, "c": {"b": 2}}),
    ("1: a\n'1': b", {1: "a", "1": "b"}),
    (
        "in: {one: &one {k: 1}, two: &two {<<: *one, k: 2}}\nthree: {<<: *two, k: 3}",
        {"in": {"one": {"k": 1}, "two": {"k": 2}}, "three": {"k": 3}},
    ),
]


@pytest.mark.parametrize(("text", "said"), DUPLICATE_KEYS)
def test_a_key_that_is_said_twice_at_one_place_is_refused_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "file.yaml").write_text(text, "utf-8")
    with pytest.raises(DocumentError, match=said):
        read_yaml(tmp_path / "file.yaml")


@pytest.mark.parametrize(("text", "told"), UNIQUE_KEYS)
def test_the_same_key_at_two_places_or_over_one_that_is_merged_is_taken(
    tmp_path: Path, text: str, told: object
) -> None:
    (tmp_path / "file.yaml").write_text(text, "utf-8")
    assert read_yaml(tmp_path / "file.yaml") == told
