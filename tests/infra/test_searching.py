"""The search for secrets, which other tests rely on, finds them wherever they stand."""

from pathlib import Path

import pytest
from tests.infra.terraform.searching import holding, written

SECRET = b"canary-5e4c"
FAR = 40_000_000


def test_a_value_is_found_behind_and_between_holes(tmp_path: Path) -> None:
    path = tmp_path / "with-holes"
    with path.open("wb") as file:
        file.seek(FAR)
        file.write(b"before " + SECRET + b" after")
        file.truncate(2 * FAR)
    assert holding([path], [b"another", SECRET]) == [path]
    assert len(written(path)) < FAR


@pytest.mark.parametrize(
    "content", [b"", b"x" * 100_000, SECRET[:-1]], ids=["empty", "plain", "a part of it"]
)
def test_what_does_not_hold_it_is_not_found(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plain"
    path.write_bytes(content)
    assert written(path) == content
    assert holding([path, tmp_path / "gone"], [SECRET]) == []


def test_nothing_but_a_hole_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hole"
    with path.open("wb") as file:
        file.truncate(FAR)
    assert holding([path], [SECRET]) == []
