"""Who may read what the platform writes: records may contain personal data, and programs' files name secrets."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

FileAccess = Literal["owner", "group", "everyone"]
"""Who may read files and folders; only the owner and, for `group`, the group may also change them."""

UMASKS: Mapping[FileAccess, int] = {"owner": 0o077, "group": 0o007, "everyone": 0o022}


def set_file_access(access: FileAccess = "owner") -> None:
    """Set who may read the files that this process and its children create from now on."""
    os.umask(UMASKS[access])


def read_umask() -> int:
    """Return the umask of this process."""
    umask = os.umask(
        0o077
    )  # the system only tells it by setting another one; files of that moment are private
    os.umask(umask)
    return umask


def find_excess_mode(folder: Path, access: FileAccess) -> int:
    """Return the permissions that a folder gives beyond the access; 0 if there are none, or no folder."""
    return stat.S_IMODE(folder.stat().st_mode) & UMASKS[access] if folder.is_dir() else 0


def restrict_folder(folder: Path, access: FileAccess) -> None:
    """Take the permissions beyond the access from a folder; others then reach nothing below it."""
    if excess := find_excess_mode(folder, access):
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) & ~excess)
