"""Duplicate keys in YAML files are refused, because one of the values would be lost."""

from pathlib import Path

import pytest

from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import DocumentError

DUPLICATE_KEYS = [
    ("a: 1\nb: 2\na: 3", "duplicate key 'a', at line 3"),
    ("a:\n  - {b: 1, c: 2, b: 1}", "duplicate key 'b', at line 2"),
    ("1: a\n1: b", "duplicate key '1', at line 2"),
]
UNIQUE_KEYS = [
    ("a: {b: 1}\nc: {b: 2}", {"a": {"b": 1}, "c": {"b": 2}}),
    ("1: a\n'1': b", {1: "a", "1": "b"}),
    (
        "in: {one: &one {k: 1}, two: &two {<<: *one, k: 2}}\nthree: {<<: *two, k: 3}",
        {"in": {"one": {"k": 1}, "two": {"k": 2}}, "three": {"k": 3}},
    ),
]


@pytest.mark.parametrize(("text", "problem"), DUPLICATE_KEYS)
def test_a_duplicate_key_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "file.yaml").write_text(text, "utf-8")
    with pytest.raises(DocumentError, match=problem):
        read_yaml(tmp_path / "file.yaml")


@pytest.mark.parametrize(("text", "expected"), UNIQUE_KEYS)
def test_a_key_may_repeat_in_another_mapping_or_override_a_merged_one(
    tmp_path: Path, text: str, expected: object
) -> None:
    (tmp_path / "file.yaml").write_text(text, "utf-8")
    assert read_yaml(tmp_path / "file.yaml") == expected
