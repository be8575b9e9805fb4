"""Claims the folder in which a process's Spark spills data that does not fit into memory.

Spark removes its folder when it stops, but a killed process leaves it. So each process locks its folder while it
lives, and the next process removes the folders that no living process has locked.
"""

import fcntl
import os
import shutil
from functools import cache
from pathlib import Path
from uuid import uuid4

_LOCK_SUFFIX = ".lock"


@cache
def claim_scratch_folder(directory: Path) -> Path:
    """Create a folder that this process owns until it ends, and remove those of processes that ended.

    A second call returns the same folder.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for lock in directory.glob(f"*{_LOCK_SUFFIX}"):
        _remove_if_orphaned(lock)
    while True:
        lock = directory / f"{uuid4().hex}{_LOCK_SUFFIX}"
        locked_fd = _try_lock(os.open(lock, os.O_CREAT | os.O_RDWR))
        # Another process may have removed the file as orphaned before it was locked.
        if locked_fd is not None and lock.exists():
            folder = lock.with_suffix("")
            folder.mkdir()
            return folder


def _remove_if_orphaned(lock: Path) -> None:
    """Remove a folder with its lock, unless a living process has locked it."""
    try:
        locked_fd = _try_lock(os.open(lock, os.O_RDWR))
    except FileNotFoundError:  # another process has removed it
        return
    if locked_fd is not None:
        shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
        lock.unlink(missing_ok=True)
        os.close(locked_fd)


def _try_lock(lock_fd: int) -> int | None:
    """Lock an open file until it is closed or this process ends; None when another process holds the lock."""
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock_fd)
        return None
    return lock_fd
