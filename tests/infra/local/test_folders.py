"""Removal of folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.local.folders import remove_tree


def test_removing_a_folder_removes_its_empty_parent(tmp_path: Path) -> None:
    (tmp_path / "run" / "kafka" / "data").mkdir(parents=True)
    remove_tree(tmp_path / "run" / "kafka")
    assert not (tmp_path / "run").exists()
    remove_tree(tmp_path / "run" / "kafka")


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalEnvironmentError, match="by hand"):
        remove_tree(tmp_path / "file")
