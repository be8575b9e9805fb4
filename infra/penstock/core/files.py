"""Files that are written whole or not at all, and files that one process holds at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from penstock.core.file_sync import sync_folder
from penstock.core.waiting import wait_until

PARTIAL_SUFFIX = ".partial"
"""The ending of a file that is being written; one that a crash left behind may be removed."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield the path of a new file, which takes the place of `path` when the block ends without an error.

    A reader, or a crash, sees the old file or the new one. Writers that run side by side use different files, so
    the last one to finish wins. Not promised: that the file survives a power cut. `sync_files` does that, for many
    files at once.
    """
    partial = path.with_name(f".{path.name}.{uuid4().hex[:12]}{PARTIAL_SUFFIX}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file with this content; a reader, a crash or a power cut leaves the old content or the new one.

    The new content survives a power cut once the call returns.
    """
    with atomic_path(path) as partial:
        write_synced(partial, content.encode() if isinstance(content, str) else content)
    sync_folder(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and sync its content, but not its name."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def file_lock(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold a file's lock, which ends with the process at the latest; raise WaitTimeoutError without it."""
    with path.open("w") as file:

        def try_lock() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        wait_until(try_lock, timeout_s, f"the lock {path}")
        yield


def read_tail(path: Path, lines: int = 15) -> str:
    """Return the last lines of a log; nothing if the file does not exist."""
    return "\n".join(path.read_text("utf-8", "replace").splitlines()[-lines:]) if path.exists() else ""
