"""Folders of the local environment."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from penstock.infra.local.errors import LocalEnvironmentError


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, and the one above when nothing is left there. Twice is no harm."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LocalEnvironmentError(
            f"{error.filename} cannot be removed: {error.strerror}. Remove {folder} by hand and destroy again."
        ) from error
    with suppress(OSError):  # something else is there still: it stays
        folder.parent.rmdir()
