"""Folders of the local environment."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from penstock.infra.local.errors import LocalEnvironmentError


def remove_tree(folder: Path) -> None:
    """Remove a folder with its content, and its parent if that is then empty. Does nothing if it is missing."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LocalEnvironmentError(
            f"{error.filename} cannot be removed: {error.strerror}. Remove {folder} by hand and destroy again."
        ) from error
    with suppress(OSError):  # it is not empty, so it stays
        folder.parent.rmdir()
