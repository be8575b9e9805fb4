"""The order in which tests are handed to workers."""

from pathlib import Path

import pytest
from tests.distribution import (
    GROUPS_LONGEST_FIRST,
    TEST_GROUPS,
    UNGROUPED_FILES,
    find_group,
)

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", [prefix for _, prefix in TEST_GROUPS] + list(UNGROUPED_FILES))
def test_every_path_of_the_distribution_exists(path: str) -> None:
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


def test_every_group_has_a_position() -> None:
    assert {group for group, _ in TEST_GROUPS} == set(GROUPS_LONGEST_FIRST)


def test_a_folder_a_file_and_a_single_test_are_units() -> None:
    assert find_group("tests/docker/test_images.py::test_one") == "compose"
    assert find_group("tests/platform/test_page.py::test_one[a::b]") == "tests/platform/test_page.py"
    assert find_group(f"{UNGROUPED_FILES[0]}::test_one") == f"{UNGROUPED_FILES[0]}::test_one"
