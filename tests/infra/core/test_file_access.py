"""Who may read the files that a process creates."""

import stat
from pathlib import Path

import pytest

from penstock.core.file_access import FileAccess, find_excess_mode, restrict_folder, set_file_access


@pytest.mark.parametrize(
    ("access", "file_mode", "folder_mode"),
    [("owner", 0o600, 0o700), ("group", 0o660, 0o770), ("everyone", 0o644, 0o755)],
)
def test_new_files_have_the_access(
    access: FileAccess, file_mode: int, folder_mode: int, tmp_path: Path
) -> None:
    set_file_access(access)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == file_mode
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == folder_mode


def test_an_open_folder_is_restricted_and_a_closed_one_is_not_opened(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert find_excess_mode(tmp_path, "group") == 0o005
    restrict_folder(tmp_path, "group")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750
    restrict_folder(tmp_path, "owner")
    restrict_folder(tmp_path, "everyone")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert find_excess_mode(tmp_path / "none", "owner") == 0
