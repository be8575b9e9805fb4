"""What Linux offers for never leaving a process behind. Standard library only; quick to import."""

import ctypes
import os
import signal
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> bool:
    """Ask to be sent a signal when the parent ends; return False if it has ended already.

    The parent is the thread that forked this process. The wish outlives exec; children do not inherit it.
    """
    _prctl(_SET_PARENT_DEATH_SIGNAL, by)
    return os.getppid() == parent


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, in init's place."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def children(pid: int | None = None) -> list[int]:
    """Return the direct children of a process with one thread, this one without a pid."""
    pid = os.getpid() if pid is None else pid
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if listed.exists():
        return [int(child) for child in listed.read_text().split()]
    processes = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [int(process.name) for process in processes if _parent(process) == pid]


def _parent(process: Path) -> int | None:
    try:
        status = (process / "stat").read_text()
    except OSError:
        return None  # it has ended meanwhile
    return int(status.rpartition(")")[2].split()[1])


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")
