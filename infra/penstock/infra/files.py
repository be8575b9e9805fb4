"""Files that are written whole or not at all, and files that are held by one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.infra.waiting import wait_until


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old text or the new one."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        written.write_text(text, "utf-8")
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


@contextmanager
def held(path: Path, seconds: float) -> Iterator[None]:
    """Hold a file's lock, which ends with the process at the latest; raise NotInTimeError without it."""
    with path.open("w") as file:

        def taken() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        wait_until(taken, seconds, f"the lock {path}")
        yield
