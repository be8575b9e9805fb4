"""Where Spark writes what does not fit into memory: a folder for each process that starts it.

Spark removes its own when it stops. A process that is killed leaves it, and nobody would ever know whose it was: so
each locks its folder for as long as it lives, and the next one removes what no living process has locked.
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
    """Make a folder that is this process's until it ends, however that is; those of processes that ended go.

    Asked again, the process gets the one that it has.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for lock in directory.glob(f"*{_LOCK_SUFFIX}"):
        _remove_if_orphaned(lock)
    while True:
        lock = directory / f"{uuid4().hex}{_LOCK_SUFFIX}"
        locked_fd = _try_lock(os.open(lock, os.O_CREAT | os.O_RDWR))
        # Between its making and its locking another process may have taken it for one that was left.
        if locked_fd is not None and lock.exists():
            folder = lock.with_suffix("")
            folder.mkdir()
            return folder


def _remove_if_orphaned(lock: Path) -> None:
    """Remove a folder with its lock, unless a process that lives has locked it."""
    try:
        locked_fd = _try_lock(os.open(lock, os.O_RDWR))
    except FileNotFoundError:  # another process was quicker
        return
    if locked_fd is not None:
        shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
        lock.unlink(missing_ok=True)
        os.close(locked_fd)


def _try_lock(lock_fd: int) -> int | None:
    """Lock an open file until it is closed, at the latest when this process ends; None where another has it."""
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock_fd)
        return None
    return lock_fd
