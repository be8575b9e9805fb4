"""The search for secrets, on which other tests rely."""

from pathlib import Path

import pytest
from tests.infra.environments.secret_search import find_files_with_values, read_without_holes

SECRET = b"canary-5e4c"
HOLE_BYTES = 40_000_000


def test_a_value_between_holes_is_found(tmp_path: Path) -> None:
    path = tmp_path / "with-holes"
    with path.open("wb") as file:
        file.seek(HOLE_BYTES)
        file.write(b"before " + SECRET + b" after")
        file.truncate(2 * HOLE_BYTES)
    assert find_files_with_values([path], [b"another", SECRET]) == [path]
    assert len(read_without_holes(path)) < HOLE_BYTES


@pytest.mark.parametrize(
    "content", [b"", b"x" * 100_000, SECRET[:-1]], ids=["empty", "plain", "a part of it"]
)
def test_a_file_without_the_value_is_not_found(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plain"
    path.write_bytes(content)
    assert read_without_holes(path) == content
    assert find_files_with_values([path, tmp_path / "gone"], [SECRET]) == []


def test_an_empty_sparse_file_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "hole"
    with path.open("wb") as file:
        file.truncate(HOLE_BYTES)
    assert find_files_with_values([path], [SECRET]) == []
